import { createHash } from "node:crypto";
import { createReadStream, constants as flags, type Stats } from "node:fs";
import { type FileHandle, link, open, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Account } from "./tools.ts";

/** Undefined where the system says `code`. */
export async function ignoring<T>(code: string, work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === code) return undefined;
    throw error;
  }
}

/** False where the work fails, for whatever reason. */
export function succeeds(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}

/** What a file of ours holds as JSON; undefined where it is not there, or was cut off. */
export async function readFacts<T>(path: string): Promise<T | undefined> {
  const text = await ignoring("ENOENT", readFile(path, "utf8"));
  try {
    return text === undefined ? undefined : ((JSON.parse(text) ?? undefined) as T | undefined);
  } catch {
    return undefined;
  }
}

/** Names of the folders in a folder. */
export async function folders(path: string): Promise<readonly string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Puts what was written to a file or folder on the disk. */
export async function sync(path: string): Promise<void> {
  const file = await open(path, flags.O_RDONLY);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The end of a file that code which is not trusted may have replaced; undefined: no file, or none that is a plain one. */
export function tail(path: string, bytes: number): Promise<string | undefined> {
  return untrusted(path, flags.O_RDONLY, async (file, { size }) => {
    const length = Math.min(bytes, size);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString("utf8", 0, bytesRead);
  });
}

/** Empties a plain file that has grown beyond `bytes`; who appends to it goes on at its start. */
export async function trim(path: string, bytes: number): Promise<void> {
  await untrusted(path, flags.O_WRONLY, async (file, { size, nlink }) => {
    if (nlink === 1 && size > bytes) await file.truncate(0);
  });
}

/** Neither follows a link nor waits for a pipe that is there instead of the file. */
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

/** Of a file's content, hexadecimal. */
export async function sha256(
  path: string,
  signal: AbortSignal,
  progress: (bytes: number) => void = () => {},
): Promise<string> {
  const hash = createHash("sha256");
  let read = 0;
  for await (const chunk of createReadStream(path, { signal, highWaterMark: 1024 * 1024 })) {
    hash.update(chunk as Buffer);
    read += (chunk as Buffer).length;
    progress(read);
  }
  return hash.digest("hex");
}

/** A file that QEMU may read and not change. */
export async function writeFor(account: Account, path: string, text: string): Promise<void> {
  await rm(path, { force: true });
  await writeFile(path, text, { mode: 0o440, flag: "wx" });
  await readable(account, path);
}

/** Lets the account read the file, by its group: who owns a file can give itself more. */
export async function readable(account: Account, path: string): Promise<void> {
  const file = await open(path, flags.O_RDONLY | flags.O_NOFOLLOW);
  try {
    if (account !== null) await file.chown(0, account.gid);
    await file.chmod(0o440);
  } finally {
    await file.close();
  }
}

/** A second name of the file; there already: nothing. */
export async function linked(from: string, to: string): Promise<void> {
  await ignoring("EEXIST", link(from, to));
}

/** Removes drafts that launchers left half done which died meanwhile: folders with a leading dot, unchanged since. */
export async function tidy(folder: string, since: number): Promise<void> {
  for (const name of await folders(folder)) {
    if (!name.startsWith(".")) continue;
    const facts = await ignoring("ENOENT", stat(join(folder, name)));
    if (facts !== undefined && facts.mtimeMs < since)
      await rm(join(folder, name), { recursive: true, force: true });
  }
}
