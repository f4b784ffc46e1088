import { RecordError } from "../errors.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const damagedUtf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** Matches strings first, so that `NaN` or `Infinity` within a string is not replaced. */
const wordsOutsideStrings = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"|-?Infinity|NaN/g;

/**
 * The text of a znode and the object in it. Python's encoder writes `NaN`, `Infinity` and `-Infinity`, which JSON does not allow, so
 * they are accepted (NaN as null). Of a duplicate key the last value counts.
 *
 * @throws RecordError `record.empty`, `record.not_json`, `record.not_an_object`
 */
export function parseObject(
  what: string,
  data: Uint8Array,
): { readonly text: string; readonly object: Readonly<Record<string, unknown>> } {
  if (data.length === 0) throw new RecordError("record.empty", `${what} has no data`);
  let text: string;
  let value: unknown;
  try {
    text = utf8.decode(data);
    value = parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RecordError("record.not_json", `${what} is not JSON: ${reason}`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new RecordError("record.not_an_object", `${what} holds JSON that is not an object`);
  }
  return { text, object: value as Record<string, unknown> };
}

/** The object in damaged data, with invalid UTF-8 as U+FFFD; undefined when the data is not an object at all. */
export function parseDamaged(data: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = parse(damagedUtf8.decode(data));
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const tamed = text.replace(wordsOutsideStrings, tame);
    if (tamed === text) throw error;
    return JSON.parse(tamed);
  }
}

function tame(word: string): string {
  if (word === "NaN") return "null";
  if (word === "Infinity") return "1e999";
  return word === "-Infinity" ? "-1e999" : word;
}
