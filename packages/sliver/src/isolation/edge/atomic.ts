import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

export interface AtomicOptions {
  readonly mode?: number;
  /** Owner of the file, user and group. */
  readonly owner?: number;
}

/** Writes a whole file or nothing, durable when it resolves. Follows no link at its last place. */
export async function writeAtomic(path: string, text: string, options: AtomicOptions = {}): Promise<void> {
  const half = `${path}.new`;
  await rm(half, { force: true });
  const file = await open(half, "wx", options.mode ?? 0o600);
  try {
    await file.writeFile(text);
    if (options.owner !== undefined) await file.chown(options.owner, options.owner);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(half, path);
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
