import { open, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { syncPath } from "@nodeyard/runtime";

/** End of a file's name until the file is complete. */
export const HALF = ".new";

/** Options of writeAtomic. */
export interface AtomicOptions {
  readonly mode?: number;
  /** Owner of the file: user and group id. */
  readonly owner?: number;
  /** False: readers see the complete file or none, but power loss may leave it empty. For files that are written again before each use. */
  readonly durable?: boolean;
}

/** Writes a complete file or nothing; durable when it resolves. Does not follow a link at the path. */
export async function writeAtomic(path: string, text: string, options: AtomicOptions = {}): Promise<void> {
  const half = `${path}${HALF}`;
  await writeNew(half, text, options);
  await rename(half, path);
  if (options.durable !== false) await syncPath(dirname(path));
}

/** A file that is there already was left by a process that died. */
async function writeNew(path: string, text: string, options: AtomicOptions): Promise<void> {
  const { mode = 0o600, owner, durable = true } = options;
  await rm(path, { force: true });
  await using file = await open(path, "wx", mode);
  await file.writeFile(text);
  if (owner !== undefined) await file.chown(owner, owner);
  if (durable) await file.sync();
}

/** Writes a new file in place of whatever an image contains there, without opening that. */
export async function replaceHostile(path: string, text: string, mode = 0o644): Promise<void> {
  await rm(path, { force: true });
  await writeFile(path, text, { flag: "wx", mode });
}

/**
 * Runs all and resolves when all have ended, even after a failure, because otherwise the others would continue to work on a sliver that the
 * next step removes. Rejects with the first failure in the order of the list.
 */
export async function together(...works: readonly Promise<unknown>[]): Promise<void> {
  for (const one of await Promise.allSettled(works)) if (one.status === "rejected") throw one.reason;
}
