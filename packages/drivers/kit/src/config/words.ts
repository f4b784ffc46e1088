import { defined } from "@nodeyard/runtime";
import type { z } from "zod";
import { type About, Field, type Note, valueNotes } from "./field.ts";
import { FROM_0 } from "./grammar.ts";
import type { Reader } from "./reader.ts";
import { type Section, section, type Table } from "./section.ts";
import {
  BOOLEAN,
  INTEGER,
  isMapping,
  listOf,
  MAPPING,
  mapOf,
  NUMBER,
  STRING,
  STRING_OR_INTEGER,
  STRING_OR_STRINGS,
  textOr,
} from "./vocabulary.ts";

type Raw = Readonly<Record<string, unknown>>;

/** The type of an absent key: its default, never for a key that the loader requires, otherwise `Else`. */
type Absent<A extends About, Else, T = never> = A extends { readonly default: infer D }
  ? Exclude<D, T>
  : A extends { readonly needed: true | "loader" }
    ? never
    : Else;

type Word<T, Else = null> = <const A extends About = Record<never, never>>(
  description: string,
  about?: A,
) => Field<T | Absent<A, Else, T>>;

const isNeeded = ({ needed }: About): boolean => needed === true || needed === "loader";

/** A key of any type. `schema`: what the validator accepts. `read` makes the compiled value and reports unusable ones with `at.error(key, ...)`. */
export function field<T>(
  description: string,
  about: About,
  schema: z.ZodType,
  read: (at: Reader, key: string) => T,
): Field<T> {
  const meta = { description, ...shown(about) };
  const notes = (value: unknown, path: Note["path"]) => valueNotes(about, value, path);
  return new Field({ schema: schema.meta(meta), about, name: undefined, read, notes });
}

interface Unit {
  readonly name: string;
  /** How many of the program's units one unit of the file is. */
  readonly scale: number;
}

/** Makes a type of keys. `read` is called only for keys that are present. */
function word<T, Else>(
  schema: z.ZodType,
  read: (at: Reader, key: string, about: About) => T | undefined,
  absent: Else,
  { unit, must = "a string" }: { readonly unit?: Unit; readonly must?: string } = {},
): Word<T, Else> {
  return (description, given) => {
    const about: About = { ...(unit === undefined ? {} : { unit: unit.name }), ...given };
    const missing = "default" in about ? about.default : absent;
    const scaled = typeof missing === "number" ? missing * (unit?.scale ?? 1) : missing;
    return field(description, about, schema, (at, key) => {
      if (at.has(key)) return read(at, key, about);
      if (isNeeded(about)) at.error(key, `is missing and must be ${must}`);
      return isNeeded(about) ? undefined : scaled;
    }) as Field<never>;
  };
}

const SECONDS = { unit: { name: "s", scale: 1000 } };

/** A text; an absent optional key is null. */
export const text = word(
  STRING,
  (at, key, about) => (isNeeded(about) ? at.needed(key) : at.text(key, "")),
  null,
);
/** One string or a list of them. */
export const textOrTexts = word(
  STRING_OR_STRINGS,
  (at, key): readonly string[] => {
    const value = at.raw[key];
    return typeof value === "string" ? [value] : at.texts(key);
  },
  [],
  { must: "a string or a list of strings" },
);
/** A text, or a number written like one: "22.04" and 22. */
export const textOrInteger = word(STRING_OR_INTEGER, (at, key) => at.text(key, ""), null);
/** A whole number. */
export const integer = word(INTEGER, (at, key) => at.number(key, 0), null);
/** A number in any notation: 1, 0.5, "0.5". */
export const number = word(NUMBER, (at, key) => at.number(key, 0), null);
/** Whole seconds in the file, milliseconds in the program. */
export const seconds = word(INTEGER, (at, key) => at.number(key, 0) * 1000, null, SECONDS);
/** Seconds in any notation, milliseconds in the program. */
export const anySeconds = word(NUMBER, (at, key) => at.number(key, 0) * 1000, null, SECONDS);
/** true or false. */
export const flag = word(BOOLEAN, (at, key) => at.flag(key, false), null);
/** A mapping whose contents are not checked. */
export const mapping = word(MAPPING, (at, key) => at.mapping(key) ?? {}, null);
/** A mapping whose values become metadata: values that are no strings are written as JSON. */
export const metadata = word(
  MAPPING,
  (at, key) => mapValues(at.mapping(key) ?? {}, jsonText),
  {} as Readonly<Record<string, string>>,
);
/** A mapping of strings. Other values are written as JSON, a missing value as the empty string. */
export const strings = word(mapOf(STRING), readStrings, {} as Readonly<Record<string, string>>);

/** Numbers by name; the names are not fixed. */
export const numbers = (description: string, of: z.ZodType, about: About) =>
  field(description, about, mapOf(of), (at, key): Readonly<Record<string, number>> => {
    const all = at.inner(key);
    return Object.fromEntries(Object.keys(all.raw).map((name) => [name, all.number(name, 0)]));
  });

/** One of the given words; the first is the default. */
export function choice<const W extends string>(description: string, words: readonly [W, ...W[]]): Field<W> {
  const list = words.length === 2 ? words.join(" or ") : `one of ${words.join(", ")}`;
  return field(description, { default: words[0] }, STRING.meta({ enum: words }), (at, key) => {
    const value = at.text(key, words[0]);
    const known = words.find((one) => one === value);
    if (known === undefined) at.error(key, `is ${value}; write ${list}`);
    return known ?? words[0];
  });
}

/** A list of strings. A key without a value counts as absent only when the table has a default. */
export const texts: Word<readonly string[], readonly string[]> = (description, given) => {
  const about: About = given ?? {};
  return field(description, about, listOf(STRING), (at, key) => {
    if (!("default" in about)) return at.texts(key);
    return at.has(key) ? at.texts(key) : about.default;
  }) as Field<never>;
};

/** A list of mappings. `nullable`: a key without a value is an empty list. `alone`: a text stands for a mapping with this key alone. */
export function entries<V>(
  inside: Section<V>,
  description: string,
  {
    nullable = false,
    alone,
    ...about
  }: About & { readonly nullable?: boolean; readonly alone?: string } = {},
): Field<readonly Entry<V>[]> {
  const item = alone === undefined ? inside.schema : textOr(inside.schema);
  const read = (at: Reader, key: string) =>
    at.mappings(key, { nullable, alone }).flatMap((item): Entry<V>[] => {
      const values = inside.read(item);
      return values === undefined ? [] : [{ ...values, at: item }];
    });
  const notes = (value: unknown, path: Note["path"]) => [
    ...valueNotes(about, value, path),
    ...(Array.isArray(value)
      ? value.flatMap((one, index) =>
          inside.notes(alone !== undefined && typeof one === "string" ? { [alone]: one } : one, [
            ...path,
            index,
          ]),
        )
      : []),
  ];
  return new Field({ ...field(description, about, listOf(item), read).parts, notes, inside });
}

/** The compiled mapping of a list item, and the reader with which further errors are reported. */
export type Entry<V> = V & { readonly at: Reader };

/** A nested mapping. An absent one has the defaults of its keys, unless `default` is given. */
export function inner<V, const A extends About = Record<never, never>>(
  inside: Section<V>,
  description: string,
  about?: A,
): Field<V | Absent<A, never>> {
  const read = (at: Reader, key: string) =>
    about !== undefined && "default" in about && !at.has(key) ? about.default : inside.read(at.inner(key));
  const notes = (value: unknown, path: Note["path"]) => [
    ...valueNotes(about ?? {}, value, path),
    ...inside.notes(value, path),
  ];
  const made = field(description, about ?? {}, inside.schema, read).parts;
  return new Field({ ...made, notes, inside }) as Field<V | Absent<A, never>>;
}

/** A nested mapping that is null when it is absent. */
export const optional = <T extends Table>(description: string, table: T) =>
  inner(section(table), description, { default: null });

/** For a key whose value is inherited from another mapping when absent. The compiled value is then undefined. */
export const inherited = (where: string) => ({ default: undefined, shown: where }) as const;

/** For a limit that is not set by default. */
export const NO_LIMIT = { default: Number.POSITIVE_INFINITY } as const;
/** The same for an amount that nodes use. Below 0 it is often meant as "no limit". */
export const LIMIT = { ...NO_LIMIT, like: FROM_0, instead: "leaves no room for any node" } as const;

/** Reads a mapping with string values. A key without a value is the empty string. */
export function readStrings(at: Reader, key: string): Readonly<Record<string, string>> {
  return mapValues(at.mapping(key) ?? {}, (value) => (value === null ? "" : jsonText(value)));
}

function mapValues(mapping: Raw, text: (value: unknown) => string): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(mapping).map(([key, value]) => [key, text(value)]));
}

function jsonText(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The facts about a key for the reference page. */
function shown({ default: missing, shown: words, unit, deprecated, like, all, instead }: About): object {
  const value = words ?? (missing === Number.POSITIVE_INFINITY ? "no limit" : missing);
  const text = Array.isArray(value) ? value.join(", ") : value;
  const isSaid = text !== undefined && text !== null && text !== "" && !isMapping(text);
  return {
    ...(isSaid ? { default: text } : {}),
    ...defined({ unit, deprecated }),
    ...(like === undefined ? {} : { ...like.json, grammar: like.write }),
    ...defined({ otherwise: instead }),
    ...(all === undefined ? {} : { size: all.write }),
  };
}

/** Note for keys that only Nodeyard has. */
export const OURS = "is a key of Nodeyard; Nodepool refuses it";
