import { readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";

/** What the machine's folder may hold that is ours; whatever else is there is somebody's. */
export const OWN_FILES = [
  "slivers",
  "pool",
  "pool.img",
  "pool.img.new",
  "cache",
  "network",
  "seccomp.policy",
] as const;

/** Removes what is ours in a folder, and the folder when nothing else is in it. Nothing may be mounted there. */
export async function removeOwn(folder: string, own: readonly string[] = OWN_FILES): Promise<void> {
  for (const name of own) await rm(join(folder, name), { recursive: true, force: true });
  if ((await readdir(folder).catch(() => undefined))?.length === 0) await rmdir(folder);
}
