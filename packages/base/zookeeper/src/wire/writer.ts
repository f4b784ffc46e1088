/** Bytes of a new chunk. */
const FIRST_CHUNK = 16 * 1024;
/** Strings of at most this many characters are written by a loop. */
const LOOP_LIMIT = 64;
/** A chunk that a burst made larger than this is released after the burst. */
const CHUNK_KEPT = 512 * 1024;

/**
 * Writes jute into one growing chunk. Many frames share a chunk, so that one system call sends them. Integers are
 * big-endian; buffers and strings start with a length of four bytes.
 */
export class JuteWriter {
  bytes: Buffer;
  view: DataView;
  /** Bytes written so far. */
  length = 0;

  constructor(size = FIRST_CHUNK) {
    this.bytes = Buffer.allocUnsafeSlow(size);
    this.view = viewOf(this.bytes);
  }

  /** Discards the written bytes and reuses the memory. */
  reset(): void {
    if (this.bytes.length > CHUNK_KEPT) this.renew();
    this.length = 0;
  }

  /** Continues in new memory, because the socket still reads the old chunk. */
  renew(): void {
    this.bytes = Buffer.allocUnsafeSlow(this.bytes.length > CHUNK_KEPT ? FIRST_CHUNK : this.bytes.length);
    this.view = viewOf(this.bytes);
    this.length = 0;
  }

  /** The written bytes, not copied: valid until the next write. */
  written(): Buffer {
    return this.bytes.subarray(0, this.length);
  }

  /** Starts a frame; returns the mark that `endFrame` needs. */
  beginFrame(): number {
    const at = this.length;
    this.#reserve(4);
    this.length = at + 4;
    return at;
  }

  /** Writes the frame's length and returns it. The four bytes of the length itself are not counted. */
  endFrame(mark: number): number {
    const size = this.length - mark - 4;
    this.view.setInt32(mark, size);
    return size;
  }

  /** A signed 32-bit integer. */
  int(value: number): void {
    this.#reserve(4);
    this.view.setInt32(this.length, value);
    this.length += 4;
  }

  long(value: bigint): void {
    this.#reserve(8);
    this.view.setBigInt64(this.length, value);
    this.length += 8;
  }

  /** A 64-bit integer that fits a JavaScript number exactly. */
  longNumber(value: number): void {
    this.#reserve(8);
    const high = Math.floor(value / 0x1_0000_0000);
    this.view.setInt32(this.length, high);
    this.view.setUint32(this.length + 4, value - high * 0x1_0000_0000);
    this.length += 8;
  }

  bool(value: boolean): void {
    this.#reserve(1);
    this.bytes[this.length++] = value ? 1 : 0;
  }

  /** jute distinguishes null (length -1) from empty. */
  buffer(value: Uint8Array | null): void {
    if (value === null) {
      this.int(-1);
      return;
    }
    const size = value.length;
    this.#reserve(4 + size);
    this.view.setInt32(this.length, size);
    this.bytes.set(value, this.length + 4);
    this.length += 4 + size;
  }

  /** UTF-8. Room is taken for the longest encoding, three bytes for each UTF-16 unit, so that its length need not be counted first. */
  string(value: string): void {
    const size = value.length;
    this.#reserve(4 + size * 3);
    const start = this.length + 4;
    const written = size <= LOOP_LIMIT ? this.#ascii(value, start) : -1;
    const length = written >= 0 ? written : this.bytes.write(value, start, size * 3, "utf8");
    this.view.setInt32(start - 4, length);
    this.length = start + length;
  }

  strings(values: readonly string[]): void {
    this.int(values.length);
    for (const value of values) this.string(value);
  }

  /** For short strings a loop beats the call into native code. Returns -1 at the first character beyond ASCII. */
  #ascii(value: string, start: number): number {
    const bytes = this.bytes;
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i);
      if (code > 127) return -1;
      bytes[start + i] = code;
    }
    return value.length;
  }

  /** Doubles the chunk, so that writing n bytes copies each a constant number of times. Views into the old chunk become stale. */
  #reserve(count: number): void {
    const needed = this.length + count;
    if (needed <= this.bytes.length) return;
    let size = this.bytes.length * 2;
    while (size < needed) size *= 2;
    const grown = Buffer.allocUnsafeSlow(size);
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
    this.view = viewOf(grown);
  }
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
