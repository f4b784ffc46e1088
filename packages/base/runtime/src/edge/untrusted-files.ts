import { constants as flags, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** A whole file that untrusted code may have replaced; undefined when there is no plain file of at most `bytes`. */
export function whole(path: string, bytes: number): Promise<string | undefined> {
  return untrusted(path, flags.O_RDONLY, async (file, { size }) => {
    if (size > bytes) return undefined;
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, 0);
    return buffer.toString("utf8", 0, bytesRead);
  });
}

/** The end of a file that untrusted code may have replaced; undefined when there is no plain file. */
export function tail(path: string, bytes: number): Promise<string | undefined> {
  return untrusted(path, flags.O_RDONLY, async (file, { size }) => {
    const length = Math.min(bytes, size);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString("utf8", 0, bytesRead);
  });
}

/** Truncates a plain file that has grown beyond `bytes`. A process that appends to it continues at its start. */
export async function trim(path: string, bytes: number): Promise<void> {
  await untrusted(path, flags.O_WRONLY, async (file, { size, nlink }) => {
    if (nlink === 1 && size > bytes) await file.truncate(0);
  });
}

/** Opens a file without following links and without blocking on a pipe that may be in its place. */
async function untrusted<T>(
  path: string,
  mode: number,
  work: (file: FileHandle, facts: Stats) => Promise<T>,
): Promise<T | undefined> {
  const file = await open(path, mode | flags.O_NOFOLLOW | flags.O_NONBLOCK).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const facts = await file.stat();
    return facts.isFile() ? await work(file, facts) : undefined;
  } finally {
    await file.close();
  }
}
