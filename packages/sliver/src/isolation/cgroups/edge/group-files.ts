import { readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { MachineError } from "../../../errors.ts";

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

/** Undefined when there is no such file. */
export async function read(file: string): Promise<string | undefined> {
  return readFile(file, "utf8").catch(() => undefined);
}

/** The groups directly below. */
export async function folders(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries.filter((one) => one.isDirectory()).map(({ name }) => name);
}

/** The groups below, outer ones first. */
export async function tree(group: string): Promise<string[]> {
  const below: string[] = [];
  for (const name of await folders(group)) below.push(join(group, name), ...(await tree(join(group, name))));
  return below;
}

/** False when a group is still busy. */
export async function removeTree(group: string): Promise<boolean> {
  for (const path of [group, ...(await tree(group))].toReversed()) {
    try {
      await rmdir(path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EBUSY") return false;
      if (code !== "ENOENT") throw error;
    }
  }
  return true;
}
