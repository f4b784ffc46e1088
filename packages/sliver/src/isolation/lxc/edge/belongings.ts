import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { PARENT } from "../../cgroups/index.ts";
import { run } from "../../edge/run.ts";
import { TABLE } from "../../network/index.ts";
import { exists } from "../../storage/edge/pool.ts";
import { readMarkName } from "../names.ts";
import type { MachineOptions } from "./machine.ts";
import { OWN_FILES } from "./own-files.ts";

/** One thing of slivers' that is on this machine. */
export interface Belonging {
  readonly kind: "sliver" | "group" | "rules" | "interface" | "mount" | "file";
  readonly name: string;
}

/** Interfaces that slivers have: cables, their inner ends, and the queue of all. */
const INTERFACE = /^ny-(?:[vp]\d{1,4}|up)$/;

/** Everything of slivers' on this machine, found without changing anything. Throws CommandError. */
export async function belongings(options: MachineOptions, signal: AbortSignal): Promise<Belonging[]> {
  const { folder } = options;
  const pool = "folder" in options.pool ? options.pool.folder : join(folder, "pool");
  const mountinfo = (await readFile("/proc/self/mountinfo", "utf8"))
    .split("\n")
    .map((line) => line.split(" "));
  const groups = mountinfo
    .filter((line) => line.slice(line.indexOf("-")).some((word) => word === "cgroup" || word === "cgroup2"))
    .map((line) => join(line[4]!, PARENT));
  const slivers = new Set<string>();
  for (const place of [join(folder, "slivers"), join(pool, "slivers"), ...groups])
    for (const name of await readdir(place).catch(() => []))
      if (readMarkName(name) !== undefined) slivers.add(name);
  const found: Belonging[] = [...slivers].sort().map((name) => ({ kind: "sliver", name }));
  for (const name of groups) if (await exists(name)) found.push({ kind: "group", name });
  const tables = await run(["nft", "list", "tables"], { signal }).catch(absent);
  if (tables.split("\n").includes(`table inet ${TABLE}`))
    found.push({ kind: "rules", name: `inet ${TABLE}` });
  for (const name of await readdir("/sys/class/net"))
    if (INTERFACE.test(name)) found.push({ kind: "interface", name });
  if (mountinfo.some((line) => line[4] === join(folder, "pool")))
    found.push({ kind: "mount", name: join(folder, "pool") });
  const files = OWN_FILES.map((name) => join(folder, name));
  if ("folder" in options.pool)
    files.push(...["slivers", "images", "names", "groups"].map((name) => join(pool, name)));
  for (const name of files) if (await exists(name)) found.push({ kind: "file", name });
  return found;
}

/** Without the program nobody made anything with it. */
function absent(error: unknown): string {
  const { cause } = error as { readonly cause?: NodeJS.ErrnoException };
  if (cause?.code === "ENOENT") return "";
  throw error;
}
