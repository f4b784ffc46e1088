/** Bytes of a block of an archive. */
const BLOCK = 512;

/** The header of a file in GNU's older tar format (its manual, "Storing Sparse Files"). `whole`: its size with a hole at its end, of no bytes. */
export function tarHeader(name: string, size: number, whole = size): Buffer<ArrayBuffer> {
  const block = Buffer.alloc(BLOCK);
  const isSparse = whole > size;
  block.write(name, 0);
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

/** What follows the bytes of the last file: the rest of its last block, and two that end the archive. */
export function tarEnd(size: number): Buffer<ArrayBuffer> {
  return Buffer.alloc(((BLOCK - (size % BLOCK)) % BLOCK) + 2 * BLOCK);
}

/** Eleven octal digits, or from 8 GiB on the number itself. */
function number(block: Buffer, at: number, value: number): void {
  if (value < 2 ** 33) {
    block.write(`${value.toString(8).padStart(11, "0")}\0`, at);
    return;
  }
  block.writeUInt8(0x80, at);
  block.writeBigUInt64BE(BigInt(value), at + 4);
}
