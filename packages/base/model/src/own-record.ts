import { RecordError, shown } from "./errors.ts";
import { type Field, type Fields, odd } from "./fields.ts";
import { ObjectText } from "./json/object-text.ts";
import { parseDamaged, parseObject } from "./json/parse.ts";

/** The version of all these records. A record of another version is refused. */
const VERSION = 1;

/** Codec of a record below `/nodeyard`, which only Nodeyard writes: JSON with its version in `v`. */
export interface OwnRecord<T> {
  /** `stored`: the record as read, when it is changed. Fields that a later release wrote stay byte for byte. */
  encode(value: T, stored?: Uint8Array): Uint8Array;
  /** @throws RecordError for data that is no record of this version, or lacks a strict field */
  decode(id: string, data: Uint8Array): T;
  /** The readable fields, with defaults for the rest. Never throws. */
  readable(data: Uint8Array): T;
}

/** Makes the codec of one kind of record. `name` and `remedy` (what to do about an unreadable record) appear in messages. */
export function ownRecord<T extends object>(
  name: string,
  fields: Fields<T>,
  remedy: (id: string) => string = () => "",
): OwnRecord<T> {
  const all = Object.entries(fields) as [keyof T, Field<unknown>][];
  const read = (
    object: Readonly<Record<string, unknown>>,
    refuse: (key: string, raw: unknown) => void,
  ): T => {
    const record: Partial<Record<keyof T, unknown>> = {};
    for (const [member, { key, missing, read: typed, strict }] of all) {
      const raw = object[key];
      const value = raw === undefined ? odd : typed(raw, () => {});
      if (value === odd && strict) refuse(key, raw);
      record[member] = value === odd ? missing : value;
    }
    return record as T;
  };
  return {
    encode(value, stored) {
      const values = all.map(([member, { key }]) => [key, value[member]] as const);
      if (stored === undefined)
        return Buffer.from(JSON.stringify({ v: VERSION, ...Object.fromEntries(values) }));
      // Spliced into the stored text: what a later release has added stays as it is.
      const texts = new Map(values.map(([key, one]) => [key, JSON.stringify(one)]));
      return Buffer.from(new ObjectText(new TextDecoder().decode(stored)).with(texts).text);
    },
    decode(id, data) {
      const what = `${name} ${id}`;
      const { object } = parseObject(what, data);
      // A release that changes the meaning of a field counts the version up; reading on would misread it.
      if (object.v !== VERSION)
        throw new RecordError(
          "record.version",
          `${what} has version ${shown(object.v)}, this Nodeyard reads ${VERSION}${remedy(id)}`,
        );
      return read(object, (key, raw) => {
        const why = raw === undefined ? "is missing" : `is ${shown(raw)}, which is not a valid value`;
        throw new RecordError("record.bad_field", `${what}: ${key} ${why}${remedy(id)}`);
      });
    },
    readable: (data) => read(parseDamaged(data) ?? {}, () => {}),
  };
}
