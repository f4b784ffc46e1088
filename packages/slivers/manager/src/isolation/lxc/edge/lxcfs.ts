import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, Gate, messageOf, sleep, succeeds } from "@nodeyard/runtime";
import { MachineError } from "../../../errors.ts";
import { howToInstall, run } from "../../edge/run.ts";
import type { Bind } from "../lxc-config.ts";

/** Number of checks whether lxcfs serves (LOOKS), and milliseconds between them (BETWEEN). */
const LOOKS = 400;
const BETWEEN = 5;

/** Files that programs read for the CPUs and the memory that they have. */
const SHOWN: readonly string[] = [
  "proc/cpuinfo",
  "proc/diskstats",
  "proc/meminfo",
  "proc/stat",
  "proc/swaps",
  "proc/uptime",
  "sys/devices/system/cpu/online",
];

/**
 * lxcfs, LXC's file system for containers: it shows a sliver its own limits instead of the machine's files of /proc. A process of
 * Nodeyard's own serves all slivers and outlives this process. Debian's lxcfs service is not used: a restart of it would leave slivers
 * with unreadable files. A machine on which it does not run has slivers all the same, which then see the machine's figures.
 */
export class Lxcfs {
  readonly #clock: Clock;
  readonly #mount: string;
  readonly #say: (line: string) => void;
  readonly #turn = new Gate(1);
  /** That it does not run was logged. Once is enough: each start asks again. */
  #reported = false;

  /** `folder` contains its mount point. */
  constructor(folder: string, clock: Clock, say: (line: string) => void) {
    this.#clock = clock;
    this.#mount = join(folder, "lxcfs");
    this.#say = say;
  }

  /** Files that a sliver sees instead of the machine's; empty when lxcfs is not installed or does not run. */
  binds(signal: AbortSignal): Promise<readonly Bind[]> {
    return this.#turn.run(async () => {
      if (!(await this.#serves())) {
        try {
          await this.#start(signal);
        } catch (error) {
          signal.throwIfAborted();
          if (!this.#reported)
            this.#say(`slivers see the CPUs and the memory of the machine: ${messageOf(error)}`);
          this.#reported = true;
          return [];
        }
      }
      return SHOWN.map((name) => ({
        from: join(this.#mount, name),
        to: name,
        kind: "file",
        locked: this.#mount,
      }));
    });
  }

  /** Ends lxcfs after the last sliver. */
  async leave(signal: AbortSignal): Promise<void> {
    await this.#turn.run(async () => {
      if (await this.#mounted()) await run(["umount", "--lazy", this.#mount], { signal });
      // lxcfs ends with the last copy of its mount, which a process in another mount namespace may keep for long. So it is killed.
      const file = `${this.#mount}.pid`;
      const pid = Number(await readFile(file, "utf8").catch(() => "0"));
      const words = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      if (words.split("\0").includes(this.#mount))
        // Only after its command line was checked, because process ids are reused.
        await run(["kill", String(pid)], { signal }).catch(() => undefined);
      await rm(file, { force: true });
    });
  }

  async #start(signal: AbortSignal): Promise<void> {
    // The mount of a killed process cannot be read, and hides the next one.
    if (await this.#mounted()) await run(["umount", "--lazy", this.#mount], { signal });
    await run(["which", "lxcfs"], { signal }).catch((cause) => {
      throw new MachineError(howToInstall("lxcfs"), { cause });
    });
    await mkdir(this.#mount, { recursive: true });
    // lxcfs does not go to the background by itself, and does not report when it serves.
    const words = ["lxcfs", "--enable-cfs", "--pidfile", `${this.#mount}.pid`, this.#mount];
    await run(["setsid", "--fork", ...words], { signal, leavesProcess: true });
    for (let look = 0; !(await this.#serves()); look++) {
      if (look === LOOKS) throw new MachineError("lxcfs did not begin to serve within 2 s");
      await sleep(this.#clock, BETWEEN, signal);
    }
  }

  /** By reading a file: a mount whose process was killed is still listed. */
  #serves(): Promise<boolean> {
    return succeeds(readFile(join(this.#mount, "proc/uptime")));
  }

  async #mounted(): Promise<boolean> {
    const mounts = await readFile("/proc/self/mountinfo", "utf8");
    return mounts.split("\n").some((line) => line.split(" ")[4] === this.#mount);
  }
}
