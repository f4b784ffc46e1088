import { createHash } from "node:crypto";
import { createReadStream, constants as flags } from "node:fs";
import { link, open, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ignoring } from "@nodeyard/driver";
import type { Account } from "./tools.ts";

/** The JSON content of a file of this driver; undefined when the file is missing or incomplete. Nothing about its form is checked. */
export async function readFacts<T>(path: string): Promise<T | undefined> {
  const text = await ignoring("ENOENT", readFile(path, "utf8"));
  try {
    return text === undefined ? undefined : ((JSON.parse(text) ?? undefined) as T | undefined);
  } catch {
    return undefined;
  }
}

/** Names of the folders in a folder, drafts (with a leading dot) included. Rejects when the folder is missing. */
export async function folders(path: string): Promise<readonly string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** SHA-256 of a file's content, hexadecimal. */
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

/** Writes a file that QEMU may read but not change. */
export async function writeFor(account: Account, path: string, text: string): Promise<void> {
  // A file of an earlier attempt may be read-only, or belong to another group.
  await rm(path, { force: true });
  await writeFile(path, text, { mode: 0o440, flag: "wx" });
  await readable(account, path);
}

/** Lets the account read the file by its group. The account must not own the file, because an owner can add permissions. */
export async function readable(account: Account, path: string): Promise<void> {
  const file = await open(path, flags.O_RDONLY | flags.O_NOFOLLOW);
  try {
    if (account !== null) await file.chown(0, account.gid);
    await file.chmod(0o440);
  } finally {
    await file.close();
  }
}

/** Makes a hard link. An existing one is kept. */
export async function linked(from: string, to: string): Promise<void> {
  await ignoring("EEXIST", link(from, to));
}

/** Removes drafts of launchers that died: folders with a leading dot that were not changed since `since`. */
export async function tidy(folder: string, since: number): Promise<void> {
  for (const name of await folders(folder)) {
    if (!name.startsWith(".")) continue;
    const facts = await ignoring("ENOENT", stat(join(folder, name)));
    if (facts !== undefined && facts.mtimeMs < since)
      await rm(join(folder, name), { recursive: true, force: true });
  }
}
