import type { JuteReader } from "./reader.ts";
import type { JuteWriter } from "./writer.ts";

/** How values of one type are written and read. */
export interface Kind<T> {
  write(w: JuteWriter, value: T): void;
  read(r: JuteReader): T;
}

/** The type of the values of a kind. */
export type ValueOf<K> = K extends Kind<infer T> ? T : never;

export const int: Kind<number> = { write: (w, value) => w.int(value), read: (r) => r.int() };
export const long: Kind<bigint> = { write: (w, value) => w.long(value), read: (r) => r.long() };
/** A 64-bit integer that fits a JavaScript number exactly (times, counts). */
export const longNumber: Kind<number> = {
  write: (w, value) => w.longNumber(value),
  read: (r) => r.longNumber(),
};
export const bool: Kind<boolean> = { write: (w, value) => w.bool(value), read: (r) => r.bool() };
export const text: Kind<string> = { write: (w, value) => w.string(value), read: (r) => r.string() };
export const texts: Kind<readonly string[]> = {
  write: (w, value) => w.strings(value),
  read: (r) => r.strings(),
};
export const bytes: Kind<Uint8Array> = { write: (w, value) => w.buffer(value), read: (r) => r.buffer() };
/** Like `bytes`, for fields that the client only reads. */
export const buffer: Kind<Buffer> = { write: (w, value) => w.buffer(value), read: (r) => r.buffer() };
export const nullableBytes: Kind<Uint8Array | null> = {
  write: (w, value) => w.buffer(value),
  read: (r) => r.nullableBuffer(),
};

/** A record: its fields in order. jute writes neither names nor types. */
export function record<T extends object>(
  fields: {
    readonly [K in keyof T]: Kind<T[K]>;
  },
): Kind<Readonly<T>> {
  const names = Object.keys(fields);
  const kinds = Object.values<Kind<unknown>>(fields);
  return {
    // Loops by index: every message passes here, and an iterator would cost as much as writing the field.
    write(w, value) {
      for (let at = 0; at < names.length; at++)
        kinds[at]!.write(w, (value as Record<string, unknown>)[names[at]!]);
    },
    read(r) {
      const value: Record<string, unknown> = {};
      for (let at = 0; at < names.length; at++) value[names[at]!] = kinds[at]!.read(r);
      return value as T;
    },
  };
}

/**
 * A list: the number of items, then the items. `least` is the shortest encoding of an item in bytes; larger counts than the frame can hold
 * are refused.
 */
export function list<T>(item: Kind<T>, least: number): Kind<readonly T[]> {
  return {
    write(w, items) {
      w.int(items.length);
      for (const one of items) item.write(w, one);
    },
    read: (r) => Array.from({ length: r.count(least) }, () => item.read(r)),
  };
}
