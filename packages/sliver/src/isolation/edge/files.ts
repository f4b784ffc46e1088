import { type FileHandle, open, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** How a file is written. */
export interface AtomicOptions {
  readonly mode?: number;
  /** Owner of the file, user and group. */
  readonly owner?: number;
  /**
   * False: readers see the whole file or none, but a loss of power may leave it empty. For files that are written again
   * before each use.
   */
  readonly durable?: boolean;
}

/** Writes a whole file or nothing, durable when it resolves. Follows no link at its last place. */
export async function writeAtomic(path: string, text: string, options: AtomicOptions = {}): Promise<void> {
  const { durable = true } = options;
  const half = `${path}.new`;
  const file = await openNew(half, options.mode ?? 0o600);
  try {
    await file.writeFile(text);
    if (options.owner !== undefined) await file.chown(options.owner, options.owner);
    if (durable) await file.sync();
  } finally {
    await file.close();
  }
  await rename(half, path);
  if (durable) await syncPath(dirname(path));
}

/** Writes a new file in the place of whatever an image has there: nothing of it is opened. */
export async function replaceHostile(path: string, text: string, mode = 0o644): Promise<void> {
  await rm(path, { force: true });
  await writeFile(path, text, { flag: "wx", mode });
}

/** Makes what is in a file durable, or the names in a folder. */
export async function syncPath(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** What is there is of a writer that died. */
async function openNew(path: string, mode: number): Promise<FileHandle> {
  try {
    return await open(path, "wx", mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    await rm(path, { force: true });
    return await open(path, "wx", mode);
  }
}

/**
 * Begins all at once and resolves when all have ended, whatever happened: after a failure the others must not go
 * on with a sliver that another step then removes. Rejects with the first failure in the order of the list.
 */
export async function together(...works: readonly Promise<unknown>[]): Promise<void> {
  for (const one of await Promise.allSettled(works)) if (one.status === "rejected") throw one.reason;
}
