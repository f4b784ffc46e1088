import { readdirSync, readFileSync } from "node:fs";
import { rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { ignoring, succeeds } from "@nodeyard/runtime";
import { MachineError } from "../../../errors.ts";
import { run } from "../../edge/run.ts";

/** In v1 a group must have all cores of the groups below: so all get the union first, then the lower ones their new cores. */
export async function writeCpus(groups: readonly string[], cpus: string): Promise<void> {
  const [own, ...below] = groups;
  const before = (await read(join(own!, "cpuset.cpus")))?.trim() ?? "";
  await put(join(own!, "cpuset.cpus"), before === "" ? cpus : `${before},${cpus}`);
  for (const group of below.toReversed()) await put(join(group, "cpuset.cpus"), cpus);
  await put(join(own!, "cpuset.cpus"), cpus);
}

/** Throws MachineError. */
export async function put(file: string, value: string): Promise<void> {
  try {
    // Never creates the file: a missing file means a missing controller.
    await writeFile(file, value, { flag: "r+" });
  } catch (cause) {
    throw new MachineError(`${file} does not take ${value}: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Reads of the kernel's own small files between two turns of the event loop. This thread does them itself, because to hand one to another
 * thread costs several times as much; and a tenant chooses how many there are.
 */
const READS = 64;
let reads = 0;

async function lookedUp<T>(readNow: () => T): Promise<T | undefined> {
  if (++reads % READS === 0) await turn();
  try {
    return readNow();
  } catch {
    return undefined;
  }
}

/** A file of the kernel's (of control groups, of interfaces), not of a disk. Undefined when there is no such file. */
export function read(file: string): Promise<string | undefined> {
  return lookedUp(() => readFileSync(file, "utf8"));
}

/** The groups directly below. */
export async function folders(path: string): Promise<string[]> {
  const entries = (await lookedUp(() => readdirSync(path, { withFileTypes: true }))) ?? [];
  return entries.filter((one) => one.isDirectory()).map(({ name }) => name);
}

/** Groups of a sliver that are looked at: LXC's, and those of some containers. A tenant may make any number, and none may choose how long a walk takes. */
const LOOKED_AT = 1_000;

/** The groups below, outer ones first, at most LOOKED_AT. */
export async function tree(group: string): Promise<string[]> {
  const below: string[] = [];
  const unseen = [group];
  while (unseen.length > 0 && below.length < LOOKED_AT) {
    const at = unseen.shift()!;
    const found = (await folders(at)).slice(0, LOOKED_AT - below.length).map((name) => join(at, name));
    below.push(...found);
    unseen.push(...found);
  }
  return below;
}

/** False when a group is still busy. */
export async function removeTree(group: string, signal: AbortSignal): Promise<boolean> {
  try {
    for (const path of [group, ...(await tree(group))].toReversed()) await ignoring("ENOENT", rmdir(path));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error;
  }
  // More groups than were looked at, or deeper than a path can be long: find goes by folders that it holds open.
  return await succeeds(run(["find", group, "-depth", "-type", "d", "-delete"], { signal }));
}
