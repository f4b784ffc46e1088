/**
 * `record.empty`: the znode has no data (docs/contract/tree.md, "Encoding"). `record.not_json`, `record.not_an_object`: the data
 * cannot be parsed. `record.unknown_state`: the state is missing or not in the table of transitions. `record.bad_field`: a field is
 * invalid without which the record cannot be handled safely. `record.bad_id`: the znode's name is invalid. `record.version`: a later
 * release wrote the record.
 */
export type RecordErrorCode =
  | "record.empty"
  | "record.not_json"
  | "record.not_an_object"
  | "record.unknown_state"
  | "record.bad_field"
  | "record.bad_id"
  | "record.version";

/** A record that cannot be read. The caller skips it, counts it and goes on with the others (rule 6). */
export class RecordError extends Error {
  readonly code: RecordErrorCode;

  constructor(code: RecordErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = "RecordError";
    this.code = code;
  }
}

/** Undefined for a record that cannot be read; other errors of `decode` are passed on. */
export function readable<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch (error) {
    if (error instanceof RecordError) return undefined;
    throw error;
  }
}

/** A value for an error message: its JSON, shortened to 60 characters. */
export function shown(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    text = undefined;
  }
  text ??= String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
