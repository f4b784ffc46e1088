import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type DriverContext, ignoring, sleep } from "@nodeyard/driver";
import { bridgeFolders, removeBridge } from "./bridge.ts";
import { folders, readFacts } from "./files.ts";
import { type Maker, makerAlive, thisMaker } from "./process.ts";

/** Folders of guests that use the bridge. A folder counts although its process has ended, as it may start again. */
const GUESTS = ["nodes", "saving"] as const;
/** Pause between two looks at a process that removes the bridge, milliseconds. */
const POLL_MS = 50;

/**
 * Marks the folder as open and waits until no process is removing its bridge. Resolves with the function that removes the mark.
 *
 * A bridge may be removed when no process has its folder open. A process that opens the folder first writes its mark and then looks for
 * removers; a remover first writes its mark and then looks for openers. So of two that meet, each sees the other.
 */
export async function opened(
  folder: string,
  { clock, random }: Pick<DriverContext, "clock" | "random">,
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  const mark = await marked(folder, "open", random.uuid());
  const close = () => rm(mark, { force: true });
  try {
    while (await anyAlive(join(folder, "leaving"))) await sleep(clock, POLL_MS, signal);
    return close;
  } catch (error) {
    await close();
    throw error;
  }
}

/** Removes this host's bridges with Nodeyard's mark that no process has open and no machine uses. `but`: a folder about to be opened. */
export async function removeUnused(
  context: Pick<DriverContext, "random" | "log">,
  signal: AbortSignal,
  but?: string,
): Promise<void> {
  for (const folder of await bridgeFolders(signal))
    if (folder !== but) await removeIfUnused(folder, context, signal);
}

/** Removes a bridge unless a process has the folder open or a machine uses it. */
export async function removeIfUnused(
  folder: string,
  { random, log }: Pick<DriverContext, "random" | "log">,
  signal: AbortSignal,
): Promise<void> {
  // Without the folder no process can have it open, because the marks are in it.
  const isThere = (await ignoring("ENOENT", folders(folder))) !== undefined;
  const mark = isThere ? await marked(folder, "leaving", random.uuid()) : undefined;
  try {
    if ((await anyAlive(join(folder, "open"))) || (await hasGuests(folder))) return;
    await removeBridge(folder, signal);
    log.info({ folder }, "removed the bridge of a folder without machines");
  } finally {
    if (mark !== undefined) await rm(mark, { force: true });
  }
}

/** Writes a mark of this process. The kind says whether it has the folder open, or removes its bridge. */
async function marked(folder: string, kind: "open" | "leaving", id: string): Promise<string> {
  const root = join(folder, kind);
  await mkdir(root, { recursive: true, mode: 0o700 });
  const mark = join(root, id);
  await writeFile(mark, JSON.stringify(await thisMaker()));
  return mark;
}

/** Whether a process of a mark lives. Marks of ended processes are removed. An unreadable mark is about to be written. */
async function anyAlive(root: string): Promise<boolean> {
  let found = false;
  for (const name of (await ignoring("ENOENT", readdir(root))) ?? []) {
    const maker = await readFacts<Maker>(join(root, name));
    if (maker === undefined || (await makerAlive(maker))) found = true;
    else await rm(join(root, name), { force: true });
  }
  return found;
}

/** Whether the folder has machines, or guests that are being saved. */
async function hasGuests(folder: string): Promise<boolean> {
  for (const kind of GUESTS) {
    const names = (await ignoring("ENOENT", folders(join(folder, kind)))) ?? [];
    if (names.length > 0) return true;
  }
  return false;
}
