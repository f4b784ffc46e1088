import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type DriverContext, sleep } from "@nodeyard/driver";
import { ignoring } from "./files.ts";
import { type Maker, makerAlive, thisMaker } from "./process.ts";

const POLL_MS = 50;

/**
 * Says that a folder of machines is open, and waits for those who take away what only they need who have it open. Resolves with what
 * ends it.
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
 * Takes something away that only those need who have the folder open; does nothing while somebody has. Whoever comes says so and then
 * looks for those who leave, whoever leaves says so and then looks for those who came: of two that meet, each sees the other.
 */
export async function whenClosed(
  folder: string,
  { random }: Pick<DriverContext, "random">,
  work: () => Promise<void>,
): Promise<void> {
  const mark = await marked(folder, "leaving", random.uuid());
  try {
    if (!(await anyAlive(join(folder, "open")))) await work();
  } finally {
    await rm(mark, { force: true });
  }
}

async function marked(folder: string, kind: "open" | "leaving", id: string): Promise<string> {
  const root = join(folder, kind);
  await mkdir(root, { recursive: true, mode: 0o700 });
  const mark = join(root, id);
  await writeFile(mark, JSON.stringify(await thisMaker()));
  return mark;
}

/** Marks of processes that have ended are removed on the way. */
async function anyAlive(root: string): Promise<boolean> {
  let found = false;
  for (const name of (await ignoring("ENOENT", readdir(root))) ?? []) {
    const text = await ignoring("ENOENT", readFile(join(root, name), "utf8"));
    if (text === undefined) continue;
    if (text === "" || (await makerAlive(JSON.parse(text) as Maker))) found = true;
    else await rm(join(root, name), { force: true });
  }
  return found;
}
