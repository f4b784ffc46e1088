/** One member of an archive, as a hostile builder would write it: nothing is checked. */
export interface TarMember {
  readonly name: string;
  /** 0 file, 1 hard link, 2 link, 3 character device, 4 block device, 5 folder, 6 FIFO. */
  readonly type?: "0" | "1" | "2" | "3" | "4" | "5" | "6";
  readonly mode?: number;
  readonly link?: string;
  readonly device?: readonly [major: number, minor: number];
  readonly content?: string;
}

const BLOCK = 512;

/** An archive in the format of POSIX.1-1988. */
export function tarOf(members: readonly TarMember[]): Buffer {
  const blocks = members.flatMap(({ content = "", ...member }) => {
    const body = Buffer.from(content);
    const padded = Buffer.alloc(Math.ceil(body.length / BLOCK) * BLOCK);
    body.copy(padded);
    return [header(member, body.length), padded];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

function header({ name, type = "0", mode = 0o755, link = "", device }: TarMember, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at);
  block.write(name, 0, 100);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(0, 136, 12);
  block.write("        ", 148);
  block.write(type, 156);
  block.write(link, 157, 100);
  block.write("ustar\x0000", 257);
  if (device !== undefined) {
    octal(device[0], 329, 8);
    octal(device[1], 337, 8);
  }
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  return block;
}
