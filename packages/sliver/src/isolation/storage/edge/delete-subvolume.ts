import { rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { run } from "../../edge/run.ts";

/** Of a subvolume the root's number is always 256; anything else is what a crash left of making one. */
const ROOT = 256;

/** One that is not there is no error. Its space comes back in the file system's own time. */
export async function deleteSubvolume(path: string, signal: AbortSignal): Promise<void> {
  const info = await stat(path).catch(() => undefined);
  if (info === undefined) return;
  if (info.ino === ROOT) await run(["btrfs", "subvolume", "delete", path], { signal });
  else await rm(path, { recursive: true, force: true });
}

/** Resolves when its space is there again: for what is large, and whose room the next one needs. */
export async function freeSubvolume(path: string, signal: AbortSignal): Promise<void> {
  if ((await stat(path).catch(() => undefined)) === undefined) return;
  await deleteSubvolume(path, signal);
  await run(["btrfs", "filesystem", "sync", dirname(path)], { signal });
  await run(["btrfs", "subvolume", "sync", dirname(path)], { signal });
}
