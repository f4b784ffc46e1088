import type { z } from "zod";
import { Field, type Note } from "./field.ts";
import { Reader } from "./reader.ts";
import { closed, isMapping } from "./vocabulary.ts";

/** The keys of one mapping, in the order of the reference page. */
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

/** The compiled values of a table. */
export type Values<T extends Table> = {
  readonly [K in keyof T & string as PropertyOf<K, T[K]>]: T[K] extends Field<infer V, string | undefined>
    ? V
    : never;
};

/** A condition on a whole mapping that only the validator checks, and the message when it does not hold. */
export type Rule = readonly [holds: (value: Readonly<Record<string, unknown>>) => boolean, message: string];

/** A table for validator and loader: `schema` is for the validator and the reference page, `read` for the loader. */
export class Section<V> {
  readonly schema: z.ZodType;
  /** The keys, with groups as in the program. */
  readonly table: Table;

  constructor(table: Table, rules: readonly Rule[], rest?: z.ZodType) {
    this.table = table;
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

  /** The compiled values; undefined when a key is missing that the loader requires. */
  read(at: Reader): V | undefined {
    return valuesOf<V>(this.table, at);
  }

  /** The compiled values of an empty mapping, for a table without required keys. */
  defaults(): V {
    return valuesOf<V>(this.table, new Reader({}, [], () => {})) as V;
  }

  /** Notes on keys that are accepted. */
  notes(value: unknown, path: readonly (string | number)[] = []): readonly Note[] {
    if (!isMapping(value)) return [];
    return Object.entries(flat(this.table)).flatMap(([key, { parts }]) =>
      Object.hasOwn(value, key) ? (parts.notes?.(value[key], [...path, key]) ?? []) : [],
    );
  }
}

/** Makes the description of a mapping in the file. */
export function section<T extends Table>(table: T, ...rules: readonly Rule[]): Section<Values<T>> {
  return new Section(table, rules);
}

/** A mapping that may have additional keys; their values are of the type `rest`. */
export function openSection<T extends Table>(table: T, rest: z.ZodType): Section<Values<T>> {
  return new Section(table, [], rest);
}

/** The same keys, for a mapping in which the loader ignores them. */
export function unread<T extends Table>(table: T): { readonly [K in keyof T]: Field<never> } {
  return Object.fromEntries(Object.entries(table).map(([key, field]) => [key, field.unread()])) as {
    readonly [K in keyof T]: Field<never>;
  };
}

/** Keys of the same mapping whose compiled values are grouped: `own`, `connection`, `limits`. */
export function group<T extends Table>(table: T): Field<Values<T>> {
  return new Field({
    schema: closed({}),
    about: { needed: "loader" },
    name: undefined,
    read: (at) => valuesOf<Values<T>>(table, at) as Values<T>,
    group: table,
  });
}

/** Reads all keys, so that all errors are found. Undefined when a required key is missing. */
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

/** The table with groups replaced by their keys. */
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
