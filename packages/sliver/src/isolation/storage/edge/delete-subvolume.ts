import { rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { run } from "../../edge/run.ts";

/** Of a subvolume the root's number is always 256; anything else is what a crash left of making one. */
const ROOT = 256;

/** One that is not there is no error. Its space comes back in the file system's own time. */
export async function deleteSubvolume(path: string, signal: AbortSignal): Promise<void> {
  const info = await stat(path).catch(() => undefined);
  if (info === undefined) return;
  if (info.ino !== ROOT) {
    await rm(path, { recursive: true, force: true });
    return;
  }
  const id = (await run(["btrfs", "inspect-internal", "rootid", path], { signal })).trim();
  await run(["btrfs", "subvolume", "delete", path], { signal });
  // Kernels before 6.11 keep the quota group for ever; later ones refuse this, and do it themselves.
  await run(["btrfs", "qgroup", "destroy", `0/${id}`, dirname(path)], { signal }).catch(() => undefined);
}

/** Resolves when its space is there again: for what is large, and whose room the next one needs. */
export async function freeSubvolume(path: string, signal: AbortSignal): Promise<void> {
  if ((await stat(path).catch(() => undefined)) === undefined) return;
  await deleteSubvolume(path, signal);
  await run(["btrfs", "filesystem", "sync", dirname(path)], { signal });
  await run(["btrfs", "subvolume", "sync", dirname(path)], { signal });
}
