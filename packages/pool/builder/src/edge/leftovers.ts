import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { MARK } from "../runs/back-ends.ts";
import type { Intent } from "../runs/disk.ts";

/** Rounds of killing: what forks while it is killed is met in the next. With the pause one second in all. */
const ROUNDS = 50;
/** Between two rounds, milliseconds. */
const ROUND_MS = 20;

/**
 * Ends what a build left on this host: processes that carry its mark, then mounts beneath its folder, loop devices by the file
 * behind them, and the folder itself. Throws when something of it stays; it is tried again by the next sweep.
 */
export async function reclaim(intent: Intent, base: string): Promise<void> {
  for (let round = 0; ; round++) {
    const pids = marked(intent.build);
    if (pids.length === 0) break;
    if (round === ROUNDS) throw new Error(`processes ${pids.join(", ")} of build ${intent.build} do not end`);
    for (const pid of pids) kill(pid);
    await wait(ROUND_MS);
  }
  for (const point of mountsBeneath(intent.work)) run("umount", "--lazy", point);
  for (const device of loopsOf(intent.work, base)) run("losetup", "--detach", device);
  // Removing a folder would also remove the content of file systems that are still mounted in it.
  const left = mountsBeneath(intent.work);
  if (left.length > 0) throw new Error(`${left[0]} of build ${intent.build} cannot be unmounted`);
  rmSync(intent.work, { recursive: true, force: true });
}

/** Processes whose environment holds the mark of the build, which children inherit. Of other users none are seen: root sees all. */
export function marked(build: string): readonly number[] {
  const mark = `${MARK}=${build}`;
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      return readFileSync(`/proc/${name}/environ`, "latin1").split("\0").includes(mark) ? [Number(name)] : [];
    } catch {
      // The process has ended, or belongs to another user.
      return [];
    }
  });
}

/** The deepest first. Octal escapes stand for blanks (proc_pid_mountinfo(5)). */
function mountsBeneath(folder: string): readonly string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) =>
      (line.split(" ")[4] ?? "").replace(/\\([0-7]{3})/g, (_, octal) =>
        String.fromCharCode(Number.parseInt(octal, 8)),
      ),
    )
    .filter((point) => point === folder || point.startsWith(`${folder}/`))
    .reverse();
}

/** Loop devices whose file is the build's, by that file and never by their number. */
function loopsOf(work: string, base: string): readonly string[] {
  return readdirSync("/sys/block").flatMap((name) => {
    if (!name.startsWith("loop")) return [];
    try {
      const file = readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8")
        .trim()
        .replace(/ \(deleted\)$/, "");
      return file.startsWith(`${work}/`) || file.startsWith(`${base}.`) ? [`/dev/${name}`] : [];
    } catch {
      // Not attached.
      return [];
    }
  });
}

/** Gone already: nothing. */
function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Blocks the process for ten seconds at most. Its failure shows in what is still there afterwards. */
function run(...[program, ...args]: readonly [string, ...string[]]): void {
  spawnSync(program, args, { timeout: 10_000, stdio: "ignore" });
}
