import { ScanProtocolError } from "../errors.ts";

/** Reads the data types of RFC 4251 section 5. Throws ScanProtocolError when the bytes end early. */
export class Fields {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The next bytes, as a view of the message. Every other method goes through it, so nothing is read past the end. */
  take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#bytes.length) {
      throw new ScanProtocolError(`a field of ${length} bytes runs past the end of an SSH message`);
    }
    const part = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return part;
  }

  byte(): number {
    return this.take(1)[0]!;
  }

  uint32(): number {
    return this.take(4).readUInt32BE();
  }

  /** Length and bytes. A length beyond the message throws before anything is allocated. */
  string(): Buffer {
    return this.take(this.uint32());
  }

  /** Names of algorithms, separated by commas; empty for an empty string. */
  nameList(): readonly string[] {
    const text = this.string().toString("latin1");
    return text === "" ? [] : text.split(",");
  }
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A string of RFC 4251: length and bytes. */
export function string(value: Uint8Array | string): Buffer {
  const bytes = typeof value === "string" ? Buffer.from(value, "latin1") : value;
  return Buffer.concat([uint32(bytes.length), bytes]);
}

export function nameList(names: readonly string[]): Buffer {
  return string(names.join(","));
}

/** A positive number without leading zeroes, except for one zero byte when the first bit would otherwise mark it as negative. */
export function mpint(bigEndian: Uint8Array): Buffer {
  const bytes = withoutLeadingZeroes(bigEndian);
  return string((bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
}

export function withoutLeadingZeroes(bytes: Uint8Array): Uint8Array {
  let start = 0;
  while (start < bytes.length && bytes[start] === 0) start++;
  return bytes.subarray(start);
}

/** Exactly `length` bytes, with leading zeroes. */
export function padded(bytes: Uint8Array, length: number): Buffer {
  const bare = withoutLeadingZeroes(bytes);
  if (bare.length > length) {
    throw new ScanProtocolError(`a number of ${bare.length} bytes where ${length} are the most`);
  }
  return Buffer.concat([Buffer.alloc(length - bare.length), bare]);
}
