import { pipeline, Readable } from "node:stream";
import { createGzip } from "node:zlib";

const BLOCK = 512;
/** Compute Engine takes disks of whole GiB. */
const GIB = 1 << 30;

/**
 * A raw disk as Compute Engine takes it: `disk.raw` in a tar archive of the older GNU format, compressed (Compute Engine, "Create an image from
 * a raw disk"). A disk that is not of whole GiB ends with a hole, which the sparse form of that format writes in no bytes.
 */
export function diskArchive(bytes: AsyncIterable<Uint8Array>, size: number): AsyncIterable<Uint8Array> {
  async function* archive() {
    yield header(size, Math.ceil(size / GIB) * GIB);
    yield* bytes;
    // The rest of the last block, and two that end the archive.
    yield Buffer.alloc(((BLOCK - (size % BLOCK)) % BLOCK) + 2 * BLOCK);
  }
  // An error of the file ends the compressed stream with it, and so whoever reads that.
  return pipeline(Readable.from(archive()), createGzip(), () => {});
}

/** The header of GNU's tar (its manual, "Basic Tar Format" and "Storing Sparse Files"). */
function header(size: number, whole: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const isSparse = whole > size;
  block.write("disk.raw", 0);
  block.write(`0000644\0${"0000000\0".repeat(2)}`, 100);
  number(block, 124, size);
  block.write("00000000000\0", 136);
  // The sum counts its own field as blanks.
  block.write(" ".repeat(8), 148);
  block.write(isSparse ? "S" : "0", 156);
  block.write("ustar  \0", 257);
  if (isSparse) {
    // Two parts: all bytes at the start, none at the end. Then the size of the file with its hole.
    for (const [at, value] of [0, size, whole, 0].entries()) number(block, 386 + 12 * at, value);
    number(block, 483, whole);
  }
  const sum = block.reduce((all, byte) => all + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/** Eleven octal digits, or from 8 GiB on the number itself. */
function number(block: Buffer, at: number, value: number): void {
  if (value < 8 * GIB) {
    block.write(`${value.toString(8).padStart(11, "0")}\0`, at);
    return;
  }
  block.writeUInt8(0x80, at);
  block.writeBigUInt64BE(BigInt(value), at + 4);
}
