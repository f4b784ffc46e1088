import type { z } from "zod";
import type { Row } from "./columns.ts";

/** The library of schemas. It is passed in by the API, since a list is printed without it, and loading it takes longer than a list. */
type Zod = typeof z;
/** The type of a key, as REST's document describes it; `T` is that of its value. */
export type Type<T = unknown> = (z: Zod) => z.ZodType<T>;

/**
 * One kind of thing as programs read it: for each key of its row the type and the value. REST's rows and schemas, the columns of the command
 * line and the types of clients are made from it, so that a new key is one line. Keys are only added: clients ignore what they do not know.
 */
export type Fields<T> = Readonly<Record<string, Field<T>>>;
/** One key. `heading`: of its column in lists that have one for it. */
export type Field<T> = readonly [type: Type, value: (thing: T) => unknown, heading?: string];

/** The row of a thing, with all keys in their order. */
export function rowOf<T>(fields: Fields<T>, thing: T): Row {
  const row: Record<string, unknown> = {};
  for (const key in fields) row[key] = fields[key]![1](thing);
  return row;
}

/** The schema of these rows. */
export function schemaOf<T>(zod: Zod, fields: Fields<T>): z.ZodObject {
  return zod.object(Object.fromEntries(Object.entries(fields).map(([key, [type]]) => [key, type(zod)])));
}

/** Keys with their types, for what is a row from the beginning: schema and type come from one table. */
export type Shape = Readonly<Record<string, Type>>;
/** What has these keys. */
export type Shaped<S extends Shape> = {
  readonly [Key in keyof S]: S[Key] extends Type<infer T> ? T : never;
};

/** An object with these keys. */
export function objectOf<S extends Shape>(shape: S): Type<Shaped<S>> {
  return (z) =>
    z.object(Object.fromEntries(Object.entries(shape).map(([key, type]) => [key, type(z)]))) as never;
}

/** Any number of them. */
export function listOf<T>(type: Type<T>): Type<readonly T[]> {
  return (z) => z.array(type(z));
}

/** A text that is always there. */
export const text: Type<string> = (z) => z.string();
/** A text or null. */
export const maybe: Type<string | null> = (z) => z.string().nullable();
/** A list of texts. */
export const texts: Type<readonly string[]> = (z) => z.array(z.string());
/** A whole number. */
export const whole: Type<number> = (z) => z.int();
/** A number. */
export const number: Type<number> = (z) => z.number();
/** True or false. */
export const boolean: Type<boolean> = (z) => z.boolean();
/** ISO 8601, of the tree. */
export const moment: Type<string | null> = (z) => z.string().meta({ format: "date-time" }).nullable();
/** What a driver or a client wrote for itself. */
export const anything: Type = (z) =>
  z.unknown().meta({ description: "as the driver or the client wrote it; `redacted` for others" });
/** The id of a resource. */
export const cloudId: Type = (z) => z.unknown().describe("as the cloud has it");
/** Whole numbers by name. */
export const counts: Type<Readonly<Record<string, number>>> = (z) => z.record(z.string(), z.int());

/** One of these texts. */
export function oneOf<const T extends string>(values: readonly T[]): Type<T> {
  return (z) => z.enum(values);
}

/** A type, and what its values mean. */
export function about<T>(type: Type<T>, meaning: string): Type<T> {
  return (z) => type(z).describe(meaning);
}
