import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@nodeyard/runtime";
import { MachineError } from "../../../errors.ts";
import { PARENT } from "../../cgroups/edge/cgroups.ts";
import { run } from "../../edge/run.ts";
import { TABLE } from "../../network/rules.ts";
import { blackhole } from "../../network/shape.ts";
import { exists } from "../../storage/edge/pool.ts";
import { readMarkName } from "../names.ts";
import { LxcBackEnd } from "./lxc-back-end.ts";
import { type MachineOptions, OWN_FILES, type SliverMachine } from "./machine.ts";

/** A thing on this machine that belongs to slivers. */
export interface Belonging {
  readonly kind: "sliver" | "group" | "rules" | "interface" | "route" | "mount" | "file";
  readonly name: string;
}

/** Network interfaces of slivers: both ends of their cables, and the common queue. */
const INTERFACE = /^ny-(?:[vp]\d{1,4}|up)$/;

/** Everything on this machine that belongs to slivers. Changes nothing. Throws CommandError. */
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
  const route = blackhole(options.network);
  const routes = await run(["ip", "-4", "route", "show", "exact", route.split(" ")[1]!], { signal }).catch(
    absent,
  );
  if (routes.split("\n").some((line) => line.trim() === route)) found.push({ kind: "route", name: route });
  for (const name of ["pool", "lxcfs"])
    if (mountinfo.some((line) => line[4] === join(folder, name)))
      found.push({ kind: "mount", name: join(folder, name) });
  const files = OWN_FILES.map((name) => join(folder, name));
  if ("folder" in options.pool)
    files.push(
      ...["slivers", "images", "names", "snapshots", "groups", "caches", "copies"].map((name) =>
        join(pool, name),
      ),
    );
  for (const name of files) if (await exists(name)) found.push({ kind: "file", name });
  return found;
}

/** Empty when the program is not installed, because then nothing was made with it. */
function absent(error: unknown): string {
  const { cause } = error as { readonly cause?: NodeJS.ErrnoException };
  if (cause?.code === "ENOENT") return "";
  throw error;
}

/**
 * Ends every sliver and removes everything that belongs to slivers. Nothing may be made at the same time. Foreign files in the machine's
 * folders stay. Throws MachineError with the names of what is left.
 */
export async function dismantle(machine: SliverMachine, signal: AbortSignal): Promise<void> {
  const { options } = machine;
  if ((await belongings(options, signal)).length === 0) return;
  await machine.prepareToEnd(signal);
  const failures: string[] = [];
  // Either kind of back end can end the slivers of the other.
  const backEnd = new LxcBackEnd("account", machine);
  for (const ref of await backEnd.inspect(signal))
    await backEnd.destroy(ref, signal).catch((error) => {
      signal.throwIfAborted();
      failures.push(`ny-${ref.index}.${ref.incarnation}: ${messageOf(error)}`);
    });
  if (failures.length > 0)
    throw new MachineError(`these slivers did not end, so nothing else was removed: ${failures.join("; ")}`);
  await machine.dismantle(signal);
  for (const { kind, name } of await belongings(options, signal)) {
    // A program that a killed manager had started may make them while they are removed.
    if (kind === "interface") await run(["ip", "link", "del", name], { signal });
    if (kind === "route") await run(["ip", "route", "del", ...name.split(" ")], { signal });
    if (kind === "file") await rm(name, { recursive: true, force: true });
  }
  const left = await belongings(options, signal);
  if (left.length > 0)
    throw new MachineError(`still there: ${left.map(({ kind, name }) => `${kind} ${name}`).join(", ")}`);
}
