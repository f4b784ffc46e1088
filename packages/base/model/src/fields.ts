import { RecordError, shown } from "./errors.ts";

/** What a reader returns for a value of the wrong type. */
export const odd: unique symbol = Symbol("odd");

/** One field of a record: its key, its default, and its conversion from and to JSON. */
export interface Field<T> {
  readonly key: string;
  /** The value when the key is absent or its value is invalid. */
  readonly missing: T;
  /** The typed value, or `odd` for a wrong type. `note` marks the field as invalid although a part of it was usable. */
  read(value: unknown, note: () => void): T | typeof odd;
  /** The JSON value to store, when it differs from the typed value. */
  readonly write?: (value: T) => unknown;
  /** An invalid value makes the whole record unusable, because acting on the default would do harm. */
  readonly strict?: boolean;
}

export type Fields<T> = { readonly [K in keyof T]: Field<T[K]> };
/** The values that a table of fields reads. */
export type ValuesOf<F> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never };

type Mutable = Record<string, unknown>;
const noOddities: readonly string[] = [];

/** Reads the fields of `object` into `into`, and sets `oddities` to the keys with invalid values. */
export function readFields<T>(
  what: string,
  fields: Fields<T>,
  object: Readonly<Record<string, unknown>>,
  into: Mutable,
): void {
  let oddities: string[] | undefined;
  let key = "";
  const note = () => {
    oddities ??= [];
    oddities.push(key);
  };
  for (const name in fields) {
    const field = fields[name] as Field<unknown>;
    key = field.key;
    const raw = object[key];
    if (raw === undefined) {
      into[name] = field.missing;
      continue;
    }
    const value = field.read(raw, note);
    if (value === odd) {
      if (field.strict) {
        throw new RecordError(
          "record.bad_field",
          `${what}: ${key} is ${shown(raw)}, which is not a valid value`,
        );
      }
      note();
      into[name] = field.missing;
    } else into[name] = value;
  }
  into.oddities = oddities ?? noOddities;
}

/**
 * The usable fields of a record that cannot be decoded as a whole. Fields that are absent, of a wrong type or damaged in their
 * encoding are left out.
 */
export function readSound<T>(fields: Fields<T>, object: Readonly<Record<string, unknown>>): Partial<T> {
  const sound: Partial<T> = {};
  for (const name in fields) {
    const raw = object[fields[name].key];
    if (raw === undefined || JSON.stringify(raw).includes("\ufffd")) continue;
    let noted = false;
    const value = fields[name].read(raw, () => {
      noted = true;
    });
    if (value !== odd && !noted) sound[name] = value;
  }
  return sound;
}

/** The keys and JSON texts that `patch` changes. Undefined members are left out. */
export function patchTexts<T>(what: string, fields: Fields<T>, patch: Partial<T>): Map<string, string> {
  const written = new Map<string, string>();
  for (const name in patch) {
    const field = fields[name] as Field<unknown> | undefined;
    if (field !== undefined && patch[name] !== undefined) {
      written.set(field.key, fieldText(what, field, patch[name]));
    }
  }
  return written;
}

function fieldText<T>(what: string, field: Field<T>, value: T): string {
  return jsonText(what, field.key, field.write === undefined ? value : field.write(value));
}

/** @throws RecordError `record.bad_field` for values that JSON cannot represent (cycles, BigInt, functions) */
export function jsonText(what: string, key: string, value: unknown): string {
  let text: string | undefined;
  let cause: unknown;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    cause = error;
  }
  if (text === undefined)
    throw new RecordError("record.bad_field", `${what}: ${key} cannot be written as JSON`, { cause });
  return text;
}

/** The text of a new object: every field in the order of the table, then `more`, whose keys are no fields. */
export function writeAll<T>(
  what: string,
  fields: Fields<T>,
  values: T,
  more: ReadonlyMap<string, string>,
): string {
  const members: string[] = [];
  const add = (key: string, text: string) => members.push(`${JSON.stringify(key)}: ${text}`);
  for (const name in fields) add(fields[name].key, fieldText(what, fields[name], values[name]));
  for (const [key, text] of more) add(key, text);
  return `{${members.join(", ")}}`;
}

/** A field that has a default. */
export function optional<T>(key: string, missing: T, read: Field<T>["read"]): Field<T> {
  return { key, missing, read };
}

/** A field without which the record cannot be used. */
export function strict<T>(key: string, read: Field<T>["read"]): Field<T> {
  return { key, missing: undefined as T, read, strict: true };
}

/** A string. */
export const word: Field<string>["read"] = (value) => (typeof value === "string" ? value : odd);
/** A finite number. */
export const number: Field<number>["read"] = (value) =>
  typeof value === "number" && Number.isFinite(value) ? value : odd;
/** True or false. */
export const bool: Field<boolean>["read"] = (value) => (typeof value === "boolean" ? value : odd);
/** A finite number, or null. */
export const numberOrNull: Field<number | null>["read"] = (value, note) =>
  value === null ? null : number(value, note);
/** A list of strings. */
export const words: Field<readonly string[]>["read"] = (value) =>
  Array.isArray(value) && value.every((item) => typeof item === "string") ? value : odd;

/** One of the given strings. */
export function oneOf<const Text extends string>(...texts: readonly Text[]): Field<Text>["read"] {
  return (value) => texts.find((text) => text === value) ?? odd;
}

/** A string, or null. */
export const text: Field<string | null>["read"] = (value) =>
  typeof value === "string" || value === null ? value : odd;

export const anything: Field<unknown>["read"] = (value) => value;

/** An object, or null. */
export const object: Field<Readonly<Record<string, unknown>> | null>["read"] = (value) =>
  value === null || isObject(value) ? value : odd;

/** A list of strings. Other items are left out and noted. Null is invalid. */
export const texts: Field<readonly string[]>["read"] = (value, note) => {
  if (!Array.isArray(value)) return odd;
  if (value.every((item) => typeof item === "string")) return value;
  note();
  return value.filter((item) => typeof item === "string");
};

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
