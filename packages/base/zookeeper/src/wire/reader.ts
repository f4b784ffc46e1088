import { ProtocolError } from "../errors.ts";
import { viewOf } from "./writer.ts";

/**
 * Shortest encoding of a string or a buffer in bytes. With it, list counts that exceed the frame are refused before memory is allocated.
 */
const LEAST_ITEM = 4;

/**
 * Reads jute from a part of a buffer. Returned values are copies and keep no reference to the buffer. Throws
 * ProtocolError when the bytes end early or a length is invalid.
 */
export class JuteReader {
  bytes: Buffer;
  view: DataView;
  offset: number;
  end: number;

  constructor(bytes: Buffer = Buffer.alloc(0)) {
    this.bytes = bytes;
    this.view = viewOf(bytes);
    this.offset = 0;
    this.end = bytes.length;
  }

  /** Reads from other bytes, from `start` to `end`. */
  reset(bytes: Buffer, start: number, end: number): void {
    if (bytes !== this.bytes) {
      this.bytes = bytes;
      this.view = viewOf(bytes);
    }
    this.offset = start;
    this.end = end;
  }

  /** Bytes of the frame that were not read yet. */
  get left(): number {
    return this.end - this.offset;
  }

  int(): number {
    return this.view.getInt32(this.#take(4));
  }

  long(): bigint {
    return this.view.getBigInt64(this.#take(8));
  }

  /** A 64-bit integer as a number. Integers above 2^53 lose their last digits. */
  longNumber(): number {
    const at = this.#take(8);
    return this.view.getInt32(at) * 0x1_0000_0000 + this.view.getUint32(at + 4);
  }

  bool(): boolean {
    return this.bytes[this.#take(1)] !== 0;
  }

  /** A copy; empty for the protocol's null. */
  buffer(): Buffer {
    return this.nullableBuffer() ?? Buffer.alloc(0);
  }

  /** A copy; null for the protocol's null. */
  nullableBuffer(): Buffer | null {
    const size = this.int();
    if (size < -1) throw new ProtocolError(`a buffer of length ${size}`);
    if (size === -1) return null;
    const at = this.#take(size);
    const copy = Buffer.allocUnsafe(size);
    copy.set(this.bytes.subarray(at, at + size));
    return copy;
  }

  /** Empty for the protocol's null. */
  string(): string {
    const size = this.int();
    if (size <= 0) {
      if (size < -1) throw new ProtocolError(`a string of length ${size}`);
      return "";
    }
    const at = this.#take(size);
    return this.bytes.toString("utf8", at, at + size);
  }

  /** The number of strings is checked against the frame before memory is allocated. */
  strings(): string[] {
    const count = this.count();
    const values: string[] = [];
    for (let i = 0; i < count; i++) values.push(this.string());
    return values;
  }

  /** The length of a list. Throws when the frame cannot hold so many items. A null list counts as empty. */
  count(least: number = LEAST_ITEM): number {
    const count = this.int();
    if (count < -1 || count * least > this.left) throw new ProtocolError(`a list of ${count} items`);
    return Math.max(count, 0);
  }

  /** The offset of the next `count` bytes. Every read passes here, so none leaves the frame. */
  #take(count: number): number {
    const at = this.offset;
    const next = at + count;
    if (next > this.end) throw new ProtocolError(`${count} bytes wanted, ${this.end - at} left in the frame`);
    this.offset = next;
    return at;
  }
}
