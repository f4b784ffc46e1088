import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, messageOf, sleep } from "@nodeyard/runtime";
import { MachineError } from "../../../errors.ts";
import { inTurn } from "../../../in-turn.ts";
import { howToInstall, run } from "../../edge/run.ts";
import type { Bind } from "../lxc-config.ts";

/** Looks whether it serves, and milliseconds between them. */
const LOOKS = 400;
const BETWEEN = 5;

/** What programs ask for the CPUs and the memory that they have. */
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
 * LXC's file system for containers: in place of the machine's files of /proc it shows a sliver its own limits. One process of our own serves
 * all slivers, and outlives this one: who restarts Debian's service would leave slivers with files that cannot be read.
 */
export class Lxcfs {
  readonly #clock: Clock;
  readonly #mount: string;
  readonly #say: (line: string) => void;
  readonly #turn = inTurn();
  #told = false;

  /** `folder` holds its mount point. */
  constructor(folder: string, clock: Clock, say: (line: string) => void) {
    this.#clock = clock;
    this.#mount = join(folder, "lxcfs");
    this.#say = say;
  }

  /** What a sliver is to see in place of the machine's; nothing where lxcfs is not installed or does not run. */
  binds(signal: AbortSignal): Promise<readonly Bind[]> {
    return this.#turn(async () => {
      if (!(await this.#serves())) {
        try {
          await this.#start(signal);
        } catch (error) {
          signal.throwIfAborted();
          if (!this.#told)
            this.#say(`slivers see the CPUs and the memory of the machine: ${messageOf(error)}`);
          this.#told = true;
          return [];
        }
      }
      return SHOWN.map((name) => ({ from: join(this.#mount, name), to: name, kind: "file" }));
    });
  }

  /** After the last sliver. */
  async leave(signal: AbortSignal): Promise<void> {
    await this.#turn(async () => {
      if (await this.#mounted()) await run(["umount", "--lazy", this.#mount], { signal });
      // It ends with the last copy of its mount, which a process in another namespace of mounts may have for long.
      const file = `${this.#mount}.pid`;
      const pid = Number(await readFile(file, "utf8").catch(() => "0"));
      const words = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      if (words.split("\0").includes(this.#mount))
        await run(["kill", String(pid)], { signal }).catch(() => undefined);
      await rm(file, { force: true });
    });
  }

  async #start(signal: AbortSignal): Promise<void> {
    // What a process that was killed left cannot be read, and hides the next one.
    if (await this.#mounted()) await run(["umount", "--lazy", this.#mount], { signal });
    await run(["which", "lxcfs"], { signal }).catch((cause) => {
      throw new MachineError(howToInstall("lxcfs"), { cause });
    });
    await mkdir(this.#mount, { recursive: true });
    // It never goes to the background by itself, and says nobody that it serves.
    const words = ["lxcfs", "--enable-cfs", "--pidfile", `${this.#mount}.pid`, this.#mount];
    await run(["setsid", "--fork", ...words], { signal, leavesProcess: true });
    for (let look = 0; !(await this.#serves()); look++) {
      if (look === LOOKS) throw new MachineError("lxcfs did not begin to serve within 2 s");
      await sleep(this.#clock, BETWEEN, signal);
    }
  }

  async #serves(): Promise<boolean> {
    return readFile(join(this.#mount, "proc/uptime")).then(
      () => true,
      () => false,
    );
  }

  async #mounted(): Promise<boolean> {
    const mounts = await readFile("/proc/self/mountinfo", "utf8");
    return mounts.split("\n").some((line) => line.split(" ")[4] === this.#mount);
  }
}
