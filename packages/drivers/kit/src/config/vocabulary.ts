import { nearest } from "@nodeyard/runtime";
import { z } from "zod";

/**
 * The types of the file format (docs/contract/config.md, "Type words"). They are stricter than JSON: `1.0` is a float and no
 * integer, so the reader of the file passes such values as `YamlFloat` and dates as `YamlDate`.
 */

/** A number that was written as a float: `10.0`, `.5`, `.inf`. */
export class YamlFloat {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** A date or time. No key of the format accepts one. */
export class YamlDate {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const isInteger = (value: unknown) => typeof value === "number" || typeof value === "boolean";
const isText = (value: unknown) => typeof value === "string";

function word(check: (value: unknown) => boolean, must: string, json: object): z.ZodType {
  return z.custom(check, { error: `must be ${must}` }).meta({ ...json });
}

/** An integer, or a boolean (which Nodepool's reader accepts as 0 and 1). */
export const INTEGER = word(isInteger, "an integer, without quotes or decimal point", { type: "integer" });

/** A number in any spelling, quoted or not. */
export const NUMBER = word((value) => toNumber(value) !== undefined, "a number", {
  type: ["number", "string"],
});

/** A number with a decimal point, as Nodepool's validator requires, or without one. */
export const FLOAT = word(
  (value) => value instanceof YamlFloat || typeof value === "number",
  "a number with a decimal point",
  { type: "number" },
);

/** true or false; texts such as "yes" are refused. */
export const BOOLEAN = word((value) => typeof value === "boolean", "true or false", { type: "boolean" });

/** A text; numbers and dates are refused. */
export const STRING = word(isText, "a string", { type: "string" });

/** A text or a whole number. */
export const STRING_OR_INTEGER = word(
  (value) => isText(value) || isInteger(value),
  "a string or an integer",
  { type: ["string", "integer"] },
);

/** One text or a list of texts. */
export const STRING_OR_STRINGS = word(
  (value) => isText(value) || (Array.isArray(value) && value.every(isText)),
  "a string or a list of strings",
  { type: ["string", "array"], items: { type: "string" } },
);

/** A mapping whose contents are not checked. */
export const MAPPING = word(isMapping, "a mapping", { type: "object" });

/** A list whose contents are not checked. */
export const LIST = word(Array.isArray, "a list", { type: "array" });

/** A list whose items match `item`. */
export function listOf(item: z.ZodType): z.ZodType {
  return z.array(item, { error: "must be a list" });
}

/** A text, or what matches `other`. Errors are those of the type that the value has. */
export function textOr(other: z.ZodType): z.ZodType {
  return z.union([STRING, other]);
}

/** A mapping with string keys and one type of values. */
export function mapOf(value: z.ZodType): z.ZodType {
  return stringKeys(z.record(z.string(), value, { error: "must be a mapping" }));
}

/** A mapping with these keys. Other keys are allowed only with `rest`, the type of their values. Only the `required` keys must be present. */
export function closed(
  shape: Readonly<Record<string, z.ZodType>>,
  required: readonly string[] = [],
  rest?: z.ZodType,
): z.ZodType {
  const keys = Object.keys(shape);
  const entries = Object.entries(shape).map(([key, schema]) => [
    key,
    required.includes(key) ? schema : schema.optional(),
  ]);
  const schema = z.strictObject(Object.fromEntries(entries), {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? unknownKeys(issue.keys as readonly string[], keys)
        : "must be a mapping",
  });
  if (rest === undefined) return schema;
  return stringKeys(z.custom(isMapping, { error: "must be a mapping" }).pipe(schema.catchall(rest)));
}

function stringKeys(schema: z.ZodType): z.ZodType {
  const error = "must have only strings as keys; put quotes around the others";
  return z.custom((mapping) => !isMapping(mapping) || !hasOddKeys(mapping), { error }).pipe(schema);
}

/** The number of a number, boolean, float or numeric string, possibly infinite; undefined for anything else. */
export function toNumber(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return Number(value);
  if (value instanceof YamlFloat) return value.value;
  if (typeof value !== "string" || !/^\s*[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$/.test(value))
    return undefined;
  return Number(value.replaceAll("_", ""));
}

/** Whether a value of a file is a mapping, as opposed to a list, a YamlDate or a YamlFloat. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof YamlFloat) &&
    !(value instanceof YamlDate)
  );
}

const mappingsWithOddKeys = new WeakSet<object>();

/** Marks a mapping that has keys other than strings in the file. */
export function markOddKeys(mapping: object): void {
  mappingsWithOddKeys.add(mapping);
}

/** Whether a mapping has keys other than strings in the file. */
function hasOddKeys(mapping: object): boolean {
  return mappingsWithOddKeys.has(mapping);
}

/** The message for unknown keys, with the known key of the most similar spelling. */
function unknownKeys(found: readonly string[], known: readonly string[]): string {
  const hint = found.length === 1 ? nearest(found[0] as string, known) : undefined;
  return hint === undefined ? "is not a key here" : `is not a key here; did you mean ${hint}?`;
}
