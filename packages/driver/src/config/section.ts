import type { z } from "zod";
import { Field, type Note } from "./field.ts";
import { Reader } from "./reader.ts";
import { closed, isMapping } from "./vocabulary.ts";

/** The keys of one mapping, in the order of the page. */
export type Table = Readonly<Record<string, Field<unknown, string | undefined>>>;

type CamelCase<K extends string> = K extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : K;

type PropertyOf<K extends string, F> =
  F extends Field<infer V, infer Name>
    ? [V] extends [never]
      ? never
      : Name extends string
        ? Name
        : CamelCase<K>
    : never;

/** What a table compiles to. */
export type Values<T extends Table> = {
  readonly [K in keyof T & string as PropertyOf<K, T[K]>]: T[K] extends Field<infer V, string | undefined>
    ? V
    : never;
};

/** A condition on a whole mapping that only the validator knows, and what it says where it does not hold. */
export type Rule = readonly [holds: (value: Readonly<Record<string, unknown>>) => boolean, message: string];

/** A table as validator and loader use it: `schema` is for the validator and the pages, `read` for the loader. */
export class Section<V> {
  readonly schema: z.ZodType;
  readonly #table: Table;

  constructor(table: Table, rules: readonly Rule[], rest?: z.ZodType) {
    this.#table = table;
    const fields = Object.entries(flat(table));
    const required = fields.flatMap(([key, { parts }]) =>
      parts.about.needed === true || parts.about.needed === "validator" ? [key] : [],
    );
    const shape = Object.fromEntries(fields.map(([key, { parts }]) => [key, parts.schema]));
    this.schema = rules.reduce(
      (schema, [holds, message]) => schema.refine((value) => !isMapping(value) || holds(value), message),
      closed(shape, required, rest),
    );
  }

  /** The compiled values; undefined after an error: a key is missing that the loader needs. */
  read(at: Reader): V | undefined {
    return valuesOf<V>(this.#table, at);
  }

  /** What an empty mapping compiles to; for a table that needs no key. */
  defaults(): V {
    return valuesOf<V>(this.#table, new Reader({}, [], () => {})) as V;
  }

  /** What there is to say of keys that are accepted. */
  notes(value: unknown, path: readonly (string | number)[] = []): readonly Note[] {
    if (!isMapping(value)) return [];
    return Object.entries(flat(this.#table)).flatMap(([key, { parts }]) =>
      Object.hasOwn(value, key) ? (parts.notes?.(value[key], [...path, key]) ?? []) : [],
    );
  }
}

/** The one description of a mapping in the file. */
export function section<T extends Table>(table: T, ...rules: readonly Rule[]): Section<Values<T>> {
  return new Section(table, rules);
}

/** A mapping that may have any other key, too; its values are of the type `rest`. */
export function openSection<T extends Table>(table: T, rest: z.ZodType): Section<Values<T>> {
  return new Section(table, [], rest);
}

/** The same keys, for a mapping of which the loader reads others only. */
export function unread<T extends Table>(table: T): { readonly [K in keyof T]: Field<never> } {
  return Object.fromEntries(Object.entries(table).map(([key, field]) => [key, field.unread()])) as {
    readonly [K in keyof T]: Field<never>;
  };
}

/** Keys of the same mapping whose compiled values belong together: `own`, `connection`, `limits`. */
export function group<T extends Table>(table: T): Field<Values<T>> {
  return new Field({
    schema: closed({}),
    about: { needed: "loader" },
    name: undefined,
    read: (at) => valuesOf<Values<T>>(table, at) as Values<T>,
    group: table,
  });
}

/** Reads all keys, so that all errors are found; undefined when a needed one is missing. */
function valuesOf<V>(table: Table, at: Reader): V | undefined {
  const values: Record<string, unknown> = {};
  let complete = true;
  for (const [key, field] of Object.entries(table)) {
    if (field.parts.isUnread === true) continue;
    const value = field.parts.read(at, key);
    if (value === undefined && field.isDemanded) complete = false;
    values[field.parts.name ?? camelCase(key)] = value;
  }
  return complete ? (values as V) : undefined;
}

/** With the keys of groups in their places. */
function flat(table: Table): Table {
  return Object.fromEntries(
    Object.entries(table).flatMap(([key, field]) =>
      field.parts.group === undefined ? [[key, field] as const] : Object.entries(flat(field.parts.group)),
    ),
  );
}

function camelCase(key: string): string {
  return key.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}
