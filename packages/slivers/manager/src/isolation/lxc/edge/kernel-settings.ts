import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { jsonOrUndefined } from "@nodeyard/runtime";
import { writeAtomic } from "../../edge/files.ts";

/**
 * Pools of the kernel that the whole machine shares and that no namespace or group divides. Defaults are for one person's machine; raised, a
 * sliver reaches limits of its own (memory, processes) before the machine's end. Names below /proc/sys; numbers are raised, never lowered.
 */
const RAISED: Readonly<Record<string, number>> = {
  "fs/inotify/max_user_instances": 1_024,
  "kernel/pid_max": 4_194_304,
  "kernel/pty/max": 1_048_576,
  "net/ipv4/neigh/default/gc_thresh3": 65_536,
  "net/ipv4/neigh/default/gc_thresh2": 32_768,
  "net/ipv6/neigh/default/gc_thresh3": 65_536,
  "net/ipv6/neigh/default/gc_thresh2": 32_768,
};

const SETTINGS = "/proc/sys";

/** Raises what is lower, and notes in a file what was there before. A kernel without one of them has nothing to raise. */
export async function raiseSettings(note: string): Promise<void> {
  const before = await noted(note);
  const lower: [string, number][] = [];
  for (const [name, value] of Object.entries(RAISED)) {
    const now = Number(await readFile(join(SETTINGS, name), "utf8").catch(() => value));
    if (now < value) lower.push([name, now]);
  }
  if (lower.length === 0) return;
  await writeAtomic(note, `${JSON.stringify({ ...Object.fromEntries(lower), ...before })}\n`);
  // A machine in a container may not change them: then its slivers share what there is.
  for (const [name] of lower)
    await writeFile(join(SETTINGS, name), String(RAISED[name])).catch(() => undefined);
}

/** Restores what `raiseSettings` found. */
export async function restoreSettings(note: string): Promise<void> {
  for (const [name, value] of Object.entries(await noted(note)).reverse())
    if (Object.hasOwn(RAISED, name))
      await writeFile(join(SETTINGS, name), String(value)).catch(() => undefined);
  await rm(note, { force: true });
}

async function noted(note: string): Promise<Readonly<Record<string, number>>> {
  const text = await readFile(note, "utf8").catch(() => "{}");
  return (jsonOrUndefined(text) ?? {}) as Record<string, number>;
}

/** Processes and threads that this machine may have. */
export async function tasksOfMachine(): Promise<number> {
  const numbers = await Promise.all(
    ["kernel/pid_max", "kernel/threads-max"].map((name) => readFile(join(SETTINGS, name), "utf8")),
  );
  return Math.min(...numbers.map(Number));
}
