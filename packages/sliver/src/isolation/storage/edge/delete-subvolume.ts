import { rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { run } from "../../edge/run.ts";
import type { QuotaGroups } from "../quota-groups.ts";

/** Of a subvolume the root's number is always 256; anything else is what a crash left of making one. */
const ROOT = 256;

/**
 * One that is not there is no error. Its space and its quota group go in the file system's own time. Resolves to the number
 * of the subvolume that went.
 */
export async function deleteSubvolume(
  path: string,
  groups: QuotaGroups,
  signal: AbortSignal,
): Promise<number | undefined> {
  const info = await stat(path).catch(() => undefined);
  if (info === undefined) return undefined;
  if (info.ino !== ROOT) {
    await rm(path, { recursive: true, force: true });
    return undefined;
  }
  const id = Number(await run(["btrfs", "inspect-internal", "rootid", path], { signal }));
  await groups.owe(id);
  try {
    await run(["btrfs", "subvolume", "delete", path], { signal });
  } finally {
    // Who gave up may have done so a moment too late.
    if ((await stat(path).catch(() => undefined)) === undefined) groups.begin(id);
  }
  return id;
}

/** Resolves when its space is there again: for what is large, and whose room the next one needs. */
export async function freeSubvolume(path: string, groups: QuotaGroups, signal: AbortSignal): Promise<void> {
  const id = await deleteSubvolume(path, groups, signal);
  if (id === undefined) return;
  await run(["btrfs", "filesystem", "sync", dirname(path)], { signal });
  await run(["btrfs", "subvolume", "sync", dirname(path), String(id)], { signal });
}
