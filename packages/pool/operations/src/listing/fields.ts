import type { z } from "zod";
import type { Row } from "./columns.ts";

/** The library of schemas. It is passed in by the API, since a list is printed without it, and loading it takes longer than a list. */
type Zod = typeof z;
/** The type of a key, as REST's document describes it. */
type Type = (z: Zod) => z.ZodType;

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

/** A text that is always there. */
export const text: Type = (z) => z.string();
/** A text or null. */
export const maybe: Type = (z) => z.string().nullable();
/** A list of texts. */
export const texts: Type = (z) => z.array(z.string());
/** A whole number. */
export const whole: Type = (z) => z.int();
/** A number. */
export const number: Type = (z) => z.number();
/** True or false. */
export const boolean: Type = (z) => z.boolean();
/** ISO 8601, of the tree. */
export const moment: Type = (z) => z.string().meta({ format: "date-time" }).nullable();
/** What a driver or a client wrote for itself. */
export const anything: Type = (z) =>
  z.unknown().meta({ description: "as the driver or the client wrote it; `redacted` for others" });
/** Whole numbers by name. */
export const counts: Type = (z) => z.record(z.string(), z.int());

/** One of these texts. */
export function oneOf(values: readonly string[]): Type {
  return (z) => z.enum(values);
}

/** A type, and what its values mean. */
export function about(type: Type, meaning: string): Type {
  return (z) => type(z).describe(meaning);
}
