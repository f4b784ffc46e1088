import { join } from "node:path";
import type { DriverContext } from "@nodeyard/driver";
import { Bridge } from "./bridge.ts";
import { folders, ignoring } from "./files.ts";
import { whenClosed } from "./openers.ts";

/** Folders of guests that a bridge is there for. */
const GUESTS = ["nodes", "saving"] as const;

/**
 * Removes the bridges of this host that carry our mark, that no provider has open in any process, and that no machine is on.
 * `but`: a folder that is about to be opened.
 */
export async function removeUnused(
  context: Pick<DriverContext, "random" | "log">,
  signal: AbortSignal,
  but?: string,
): Promise<void> {
  for (const folder of await Bridge.folders(signal))
    if (folder !== but) await removeIfUnused(folder, context, signal);
}

/** Nothing while somebody has the folder open, or a machine is in it. */
export async function removeIfUnused(
  folder: string,
  context: Pick<DriverContext, "random" | "log">,
  signal: AbortSignal,
): Promise<void> {
  const remove = async () => {
    if (await hasGuests(folder)) return;
    await Bridge.remove(folder, signal);
    context.log.info({ folder }, "removed the bridge of a folder without machines");
  };
  const isThere = (await ignoring("ENOENT", folders(folder))) !== undefined;
  // Without its folder nobody can have it open: there is no place to say so.
  await (isThere ? whenClosed(folder, context, remove) : remove());
}

async function hasGuests(folder: string): Promise<boolean> {
  for (const kind of GUESTS) {
    const names = (await ignoring("ENOENT", folders(join(folder, kind)))) ?? [];
    if (names.length > 0) return true;
  }
  return false;
}
