import { RecordError, shown } from "./errors.ts";
import { type Fields, patchTexts, readFields, writeAll } from "./fields.ts";
import { parseObject } from "./json/parse.ts";
import { splice } from "./json/splice.ts";

/** What every record has beside its fields. */
export interface Stored {
  /** The znode's name; empty for a record that the tree has not named yet. */
  readonly id: string;
  /** The JSON as it was read, with our changes in it: opaque, for encoding. */
  readonly source: string;
  /** JSON keys whose values were of a wrong type; each has its default here and its raw text in the tree. */
  readonly oddities: readonly string[];
}

export interface RecordKind<T> {
  /** For messages: "node", "request". */
  readonly name: string;
  readonly states: readonly string[];
  readonly fields: Fields<T>;
  /** Keys that other readers need in anything we write, with the JSON text for records that lack them. */
  readonly mandatory: ReadonlyMap<string, string>;
  /** See `shapeOf`. */
  readonly shape: Readonly<Record<string, null>>;
}

/**
 * An object with every member of a record, all null. Records start as copies of it, because an object that grows by more
 * than a dozen computed keys becomes a hash table in V8: fifty times slower to copy and larger.
 */
export function shapeOf<T extends object>(fields: Fields<T>): Readonly<Record<string, null>> {
  return Object.fromEntries(["id", "source", "oddities", ...Object.keys(fields)].map((name) => [name, null]));
}

/**
 * Bytes of `encodeRecord` that come back as the same object give the same record. They must not have been changed.
 * `prepare` may show the reader other values than the text has, for keys with an older name.
 *
 * @throws RecordError when the record cannot be handled
 */
export function decodeRecord<T>(
  kind: RecordKind<T>,
  id: string,
  data: Uint8Array,
  prepare: (raw: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>> = (raw) => raw,
): T & Stored {
  const own = written.get(data);
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
  const record: Record<string, unknown> = { ...kind.shape, id, source: text };
  readFields(what, kind.fields, prepare(object), record);
  return record as T & Stored;
}

/** Only the changed fields' text is replaced; what we do not know stays as it was written. */
export function changeRecord<T extends object>(
  kind: RecordKind<T>,
  record: T & Stored,
  patch: Partial<T>,
  more?: ReadonlyMap<string, string>,
): T & Stored {
  const values = patchTexts(`${kind.name} ${record.id}`, kind.fields, patch);
  const oddities = record.oddities.filter((key) => !values.has(key));
  const next: Record<string, unknown> = { ...record, oddities };
  for (const name in patch) if (name in kind.fields && patch[name] !== undefined) next[name] = patch[name];
  for (const [key, value] of more ?? []) values.set(key, value);
  next.source = splice(record.source, values, kind.mandatory);
  return next as T & Stored;
}

/** Whoever sets a state says when. */
export function stamped<T extends { readonly state: unknown; readonly stateTime: number | null }>(
  patch: Partial<T>,
  nowSeconds: number,
): Partial<T> {
  return patch.state === undefined ? patch : { ...patch, stateTime: nowSeconds };
}

export function newRecord<T extends object>(kind: RecordKind<T>, id: string, given: Partial<T>): T & Stored {
  const all = { ...kind.shape } as Partial<T>;
  for (const name in kind.fields)
    all[name] = given[name] === undefined ? kind.fields[name].missing : given[name];
  const source = writeAll(`a new ${kind.name}`, kind.fields, all as T, kind.mandatory);
  return { ...(all as T), id, source, oddities: [] };
}

/** The bytes are remembered with their record while they live: a feed that hands them back costs no parse. */
export function encodeRecord<T>(kind: RecordKind<T>, record: Stored): Uint8Array {
  const data = encoder.encode(record.source);
  written.set(data, { kind, record });
  return data;
}

const encoder = new TextEncoder();
const written = new WeakMap<Uint8Array, { readonly kind: unknown; readonly record: Stored }>();
