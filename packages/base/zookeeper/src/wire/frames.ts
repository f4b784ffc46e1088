import { ProtocolError } from "../errors.ts";

const FIRST_CARRY = 64 * 1024;
/** A carry buffer above this size is released after the long frame that needed it. */
const CARRY_KEPT = 1024 * 1024;

/**
 * Cuts a byte stream into frames: a length of four bytes, then that many bytes. A frame that arrives in one piece is passed
 * on in place. A frame that arrives in pieces is assembled in the carry buffer.
 */
export class FrameSplitter {
  readonly #limit: number;
  readonly #onFrame: (bytes: Buffer, start: number, end: number) => void;
  /** The beginning of a frame that is not complete, `#carried` bytes of it. Kept for the next such frame. */
  #carry: Buffer = Buffer.alloc(0);
  #carried = 0;
  #stopped = false;

  /** `limit` is the longest frame in bytes; `onFrame` must not keep `bytes`. */
  constructor(limit: number, onFrame: (bytes: Buffer, start: number, end: number) => void) {
    this.#limit = limit;
    this.#onFrame = onFrame;
  }

  /** Stops the output of frames, also those of a `push` in progress. */
  stop(): void {
    this.#stopped = true;
  }

  /** Takes the first `length` bytes. Throws ProtocolError when the length of a frame is negative or above the limit. */
  push(bytes: Buffer, length: number = bytes.length): void {
    let at = this.#carried > 0 ? this.#complete(bytes, length) : 0;
    while (!this.#stopped && length - at >= 4) {
      const size = this.#check(bytes.readInt32BE(at));
      const end = at + 4 + size;
      if (end > length) break;
      this.#onFrame(bytes, at + 4, end);
      at = end;
    }
    if (at < length && !this.#stopped) this.#keep(bytes, at, length);
  }

  /** Completes the frame in the carry buffer as far as possible; returns how many of the bytes it used. */
  #complete(bytes: Buffer, length: number): number {
    let at = 0;
    if (this.#carried < 4) {
      at = Math.min(4 - this.#carried, length);
      this.#keep(bytes, 0, at);
      if (this.#carried < 4) return at;
    }
    const total = 4 + this.#check(this.#carry.readInt32BE(0));
    const next = Math.min(at + total - this.#carried, length);
    this.#keep(bytes, at, next, total);
    if (this.#carried < total) return next;
    const carry = this.#carry;
    this.#carried = 0;
    if (carry.length > CARRY_KEPT) this.#carry = Buffer.alloc(0);
    this.#onFrame(carry, 4, total);
    return next;
  }

  /** Copies into the carry buffer. `total`: length of the whole frame, if it is known, so that it grows once. */
  #keep(bytes: Buffer, start: number, end: number, total = 0): void {
    const needed = this.#carried + end - start;
    if (needed > this.#carry.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, total, FIRST_CARRY));
      grown.set(this.#carry.subarray(0, this.#carried));
      this.#carry = grown;
    }
    this.#carry.set(bytes.subarray(start, end), this.#carried);
    this.#carried = needed;
  }

  /** A wrong length means that the stream is no longer read at the start of a frame, so no later length can be trusted. */
  #check(size: number): number {
    if (size < 0 || size > this.#limit) {
      throw new ProtocolError(`a frame of ${size} bytes, with ${this.#limit} allowed`);
    }
    return size;
  }
}
