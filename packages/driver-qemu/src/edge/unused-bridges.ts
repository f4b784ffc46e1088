import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type DriverContext, sleep } from "@nodeyard/driver";
import { Bridge } from "./bridge.ts";
import { folders, ignoring, readFacts } from "./files.ts";
import { type Maker, makerAlive, thisMaker } from "./process.ts";

/** Folders of guests that a bridge is there for. */
const GUESTS = ["nodes", "saving"] as const;
const POLL_MS = 50;

/**
 * A bridge goes when no process has its folder open. Whoever comes marks that in the folder and then looks for those who take the bridge
 * away; whoever does that marks it and then looks for those who came: of two that meet, each sees the other.
 *
 * Marks the folder as open, and waits until nobody takes its bridge away. Resolves with what ends it.
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
  { random, log }: Pick<DriverContext, "random" | "log">,
  signal: AbortSignal,
): Promise<void> {
  // Without its folder nobody can have it open: there is no place to say so.
  const isThere = (await ignoring("ENOENT", folders(folder))) !== undefined;
  const mark = isThere ? await marked(folder, "leaving", random.uuid()) : undefined;
  try {
    if ((await anyAlive(join(folder, "open"))) || (await hasGuests(folder))) return;
    await Bridge.remove(folder, signal);
    log.info({ folder }, "removed the bridge of a folder without machines");
  } finally {
    if (mark !== undefined) await rm(mark, { force: true });
  }
}

async function marked(folder: string, kind: "open" | "leaving", id: string): Promise<string> {
  const root = join(folder, kind);
  await mkdir(root, { recursive: true, mode: 0o700 });
  const mark = join(root, id);
  await writeFile(mark, JSON.stringify(await thisMaker()));
  return mark;
}

/** Marks of processes that have ended are removed on the way; one that cannot be read (yet) is of a process that is about to write it. */
async function anyAlive(root: string): Promise<boolean> {
  let found = false;
  for (const name of (await ignoring("ENOENT", readdir(root))) ?? []) {
    const maker = await readFacts<Maker>(join(root, name));
    if (maker === undefined || (await makerAlive(maker))) found = true;
    else await rm(join(root, name), { force: true });
  }
  return found;
}

async function hasGuests(folder: string): Promise<boolean> {
  for (const kind of GUESTS) {
    const names = (await ignoring("ENOENT", folders(join(folder, kind)))) ?? [];
    if (names.length > 0) return true;
  }
  return false;
}
