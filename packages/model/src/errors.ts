/**
 * `record.empty`: zero bytes, so not a real object (docs/contract/tree.md, "Encoding"). `record.not_json`, `record.not_an_object`:
 * the data. `record.unknown_state`: a state outside the table of transitions, or none. `record.bad_field`: a field
 * without which the record cannot be handled safely. `record.bad_id`: the znode's name. `record.version`: written by a later release.
 */
export type RecordErrorCode =
  | "record.empty"
  | "record.not_json"
  | "record.not_an_object"
  | "record.unknown_state"
  | "record.bad_field"
  | "record.bad_id"
  | "record.version";

/** A record that makes no sense: skip it, count it, and go on with the others. */
export class RecordError extends Error {
  readonly code: RecordErrorCode;

  constructor(code: RecordErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = "RecordError";
    this.code = code;
  }
}

/** A value as an error message shows it: its JSON, cut to a readable length. */
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
