import { RecordError, shown } from "./errors.ts";
import { type Fields, patchTexts, readFields, writeAll } from "./fields.ts";
import { ObjectText } from "./json/object-text.ts";
import { parseObject } from "./json/parse.ts";

/** Members that every record has besides its fields. */
export interface Stored {
  /** The znode's name; empty until the tree has assigned one. */
  readonly id: string;
  /** The JSON text as read, with this process's changes. Only for encoding. */
  readonly source: ObjectText;
  /** JSON keys with invalid values. The record has the default for each; the text keeps the raw value. */
  readonly oddities: readonly string[];
}

export interface RecordKind<T> {
  /** For messages: "node", "request". */
  readonly name: string;
  readonly states: readonly string[];
  readonly fields: Fields<T>;
  /** Keys of fields that other programs require, with the JSON text for records that lack them. */
  readonly mandatory: ReadonlyMap<string, string>;
  /** See `blankOf`. */
  readonly blank: T & Stored;
}

const NONE: ReadonlyMap<string, string> = new Map();

/**
 * The record that has every default; others start as copies of it. V8 turns an object to which more than a dozen computed keys are added
 * into a hash table, which is larger and fifty times slower to copy. `more`: JSON texts of keys that are no fields.
 */
export function blankOf<T extends object>(name: string, fields: Fields<T>, more = NONE): T & Stored {
  const defaults = Object.fromEntries(
    Object.keys(fields).map((key) => [key, fields[key as keyof T].missing]),
  );
  const source = new ObjectText(writeAll(`a new ${name}`, fields, defaults as T, more));
  return { id: "", source, oddities: [], ...(defaults as T) };
}

/**
 * Decodes a record. For the very byte array that `encodeRecord` returned it returns the same record without parsing; such bytes must not
 * be changed. `prepare` may substitute values before they are read, for keys with an older name.
 *
 * @throws RecordError when the record cannot be used
 */
export function decodeRecord<T>(
  kind: RecordKind<T>,
  id: string,
  data: Uint8Array,
  prepare: (raw: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>> = (raw) => raw,
): T & Stored {
  const own = (data as OwnBytes)[WRITTEN];
  if (own?.kind === kind) return (own.record.id === id ? own.record : { ...own.record, id }) as T & Stored;
  const what = `${kind.name} ${id}`;
  const { text, object } = parseObject(what, data);
  if (!kind.states.includes(object.state as string)) {
    const states = kind.states.join(", ");
    throw new RecordError(
      "record.unknown_state",
      `${what}: state is ${shown(object.state)}, not one of ${states}`,
    );
  }
  const record: Record<string, unknown> = { ...kind.blank, id, source: new ObjectText(text) };
  readFields(what, kind.fields, prepare(object), record);
  return record as T & Stored;
}

/**
 * A copy with changed fields. Only their text is replaced; all other text stays as it was written (rule 7). `more`: JSON texts of keys
 * that are no fields.
 */
export function changeRecord<T extends object>(
  kind: RecordKind<T>,
  record: T & Stored,
  patch: Partial<T>,
  more = NONE,
): T & Stored {
  const what = record.id === "" ? `a new ${kind.name}` : `${kind.name} ${record.id}`;
  const values = patchTexts(what, kind.fields, patch);
  const oddities = record.oddities.filter((key) => !values.has(key));
  const next: Record<string, unknown> = { ...record, oddities };
  for (const name in patch) if (name in kind.fields && patch[name] !== undefined) next[name] = patch[name];
  for (const [key, value] of more) values.set(key, value);
  next.source = record.source.with(values, kind.mandatory);
  return next as T & Stored;
}

/** Adds the time of the change to a patch that sets the state. */
export function stamped<T extends { readonly state: unknown; readonly stateTime: number | null }>(
  patch: Partial<T>,
  nowSeconds: number,
): Partial<T> {
  return patch.state === undefined ? patch : { ...patch, stateTime: nowSeconds };
}

/** A record that is not stored yet. `more`: JSON texts of keys that are no fields. */
export function newRecord<T extends object>(
  kind: RecordKind<T>,
  id: string,
  given: Partial<T>,
  more = NONE,
): T & Stored {
  return changeRecord(kind, { ...kind.blank, id }, given, more);
}

/**
 * The bytes of a record. They remember the record, so that a feed that reports them needs no parsing: as a property, since an entry in a
 * WeakMap takes five times as long to make as the bytes.
 */
export function encodeRecord<T>(kind: RecordKind<T>, record: Stored): Uint8Array {
  // Not by TextEncoder: its arrays have memory of their own outside of the heap, which is slow to get and to give back.
  const data: OwnBytes = Buffer.from(record.source.text);
  data[WRITTEN] = { kind, record };
  return data;
}

const WRITTEN: unique symbol = Symbol("record");

type OwnBytes = Uint8Array & { [WRITTEN]?: { readonly kind: unknown; readonly record: Stored } };
