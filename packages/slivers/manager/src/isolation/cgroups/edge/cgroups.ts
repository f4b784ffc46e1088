import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, Gate, sleep, succeeds } from "@nodeyard/runtime";
import type { SliverUsage } from "@nodeyard/sliver-protocol";
import { MachineError } from "../../../errors.ts";
import {
  type CgroupLayout,
  GUARANTEE,
  type Hierarchy,
  liftingWrites,
  readLayout,
  type Together,
  type Write,
} from "../limits.ts";
import { COUNTERS, readUsage } from "../usage.ts";
import { folders, put, read, removeTree, tree, writeCpus } from "./group-files.ts";

/** The group above those of all slivers, so that all slivers together compete with the rest of the machine. */
export const PARENT = "nodeyard-slivers";
/** Milliseconds between two checks of whether a group is empty: at first, and at most. */
const FIRST_LOOK = 2;
const SLOWEST_LOOK = 100;

/** In cgroup.events: a process is in the group or below. */
const POPULATED = /^populated 1$/m;
/** Groups that a sliver may make below its own, and how deep: the kernel's memory for them counts for nobody. */
const MOST_GROUPS = { "cgroup.max.descendants": "2000", "cgroup.max.depth": "32" } as const;

/**
 * The control groups of slivers, written by this process. `mark` is the name of a sliver's group. A sliver has one in every hierarchy:
 * a single one with cgroup v2, one for each controller with v1. LXC makes its own below: `payload` has the sliver's processes, beside
 * it is its monitor.
 */
export class Cgroups {
  readonly layout: CgroupLayout;
  readonly #clock: Clock;
  /** Serializes the sums, so that a later sum sees what an earlier one has written. */
  readonly #turn = new Gate(1);

  constructor(layout: CgroupLayout, clock: Clock) {
    this.layout = layout;
    this.#clock = clock;
  }

  /** Finds out what this machine has mounted, and which controllers v2 offers at its root. */
  static async detect(clock: Clock): Promise<Cgroups> {
    const mountinfo = await readFile("/proc/self/mountinfo", "utf8");
    const available = new Map<string, string[]>();
    for (const { mount } of readLayout(mountinfo, () => []).hierarchies)
      available.set(mount, ((await read(join(mount, "cgroup.controllers"))) ?? "").trim().split(" "));
    return new Cgroups(
      readLayout(mountinfo, (mount) => available.get(mount) ?? []),
      clock,
    );
  }

  /** The marks of all groups that exist. */
  async list(): Promise<string[]> {
    const found = new Set<string>();
    for (const { mount } of this.layout.hierarchies)
      for (const name of await folders(join(mount, PARENT))) found.add(name);
    return [...found];
  }

  /**
   * Makes a sliver's group in every hierarchy. `all`: what all slivers together may have, so that slivers without limits of their own leave
   * the machine what it needs.
   */
  async make(mark: string, all: Pick<Together, "memory" | "tasks">): Promise<void> {
    for (const hierarchy of this.layout.hierarchies) {
      const parent = join(hierarchy.mount, PARENT);
      await mkdir(parent, { recursive: true });
      await this.#prepare(hierarchy, hierarchy.mount, parent);
      const own = join(parent, mark);
      await mkdir(own, { recursive: true });
      await this.#prepare(hierarchy, parent, own);
      if (hierarchy.version === 2)
        for (const [file, value] of Object.entries(MOST_GROUPS)) await put(join(own, file), value);
    }
    const { memory, pids } = Object.fromEntries(this.layout.controllers);
    if (pids !== undefined) await put(join(pids.mount, PARENT, "pids.max"), String(all.tasks));
    if (memory === undefined) return;
    const files = [
      { "memory.limit_in_bytes": all.memory },
      { "memory.max": all.memory, "memory.swap.max": 0 },
    ];
    for (const [file, value] of Object.entries(files[memory.version - 1]!))
      await put(join(memory.mount, PARENT, file), String(value));
  }

  /** Writes limits in their order. The group must exist. Rejects with the kernel's error for a value that it refuses. */
  async apply(mark: string, writes: readonly Write[]): Promise<void> {
    for (const { controller, file, value, below, above, mayLack } of writes) {
      const { mount, version } = this.layout.controllers.get(controller)!;
      const own = join(mount, PARENT, mark);
      if (mayLack && (await read(join(own, file))) === undefined) continue;
      const lower =
        version === 1
          ? tree
          : async (group: string) => (await folders(group)).map((name) => join(group, name));
      const groups = [
        ...(below === "only" ? [] : [above ? join(mount, PARENT) : own]),
        ...(below === undefined ? [] : await lower(own)),
      ];
      if (file === "cpuset.cpus") await writeCpus(groups, value);
      else for (const group of groups) await put(join(group, file), value);
      // In v1, memory and swap together as well, if the kernel counts swap. Otherwise memory above the limit would be swapped out without a
      // bound.
      if (file === "memory.limit_in_bytes")
        await put(join(own, "memory.memsw.limit_in_bytes"), value).catch(() => undefined);
      if (file === GUARANTEE) await this.#guaranteeAll(mount);
    }
  }

  /** Ids of the group's processes, as this machine numbers them. */
  async processes(mark: string, part = ""): Promise<number[]> {
    const found = new Set<number>();
    for (const { mount } of this.layout.hierarchies) {
      const top = join(mount, PARENT, mark, part);
      for (const group of [top, ...(await tree(top))])
        for (const line of ((await read(join(group, "cgroup.procs"))) ?? "").split("\n"))
          if (line !== "" && line !== "0") found.add(Number(line));
    }
    return [...found];
  }

  /**
   * Whether the group has a process, by one read. LXC starts processes in every hierarchy, and a process inside cannot leave one. This is
   * cheap enough for every sliver of a report. Read the processes before acting on a sliver.
   */
  async populated(mark: string, part: string): Promise<boolean> {
    const hierarchy = this.#whole ?? this.layout.controllers.get("pids") ?? this.layout.hierarchies[0];
    if (hierarchy === undefined) return false;
    const top = join(hierarchy.mount, PARENT, mark, part);
    if (hierarchy.version === 2) return POPULATED.test((await read(join(top, "cgroup.events"))) ?? "");
    const holds = async (group: string) => ((await read(join(group, "cgroup.procs"))) ?? "") !== "";
    if (await holds(top)) return true;
    for (const group of await tree(top)) if (await holds(group)) return true;
    return false;
  }

  /** Number of processes that the kernel killed because the group's memory was full. Undefined: not measured, or no such group. */
  async memoryKills(mark: string): Promise<number | undefined> {
    const memory = this.layout.controllers.get("memory");
    if (memory === undefined) return undefined;
    const own = join(memory.mount, PARENT, mark);
    // v1 counts in the group of the process only, and LXC's groups are below.
    const [groups, file] =
      memory.version === 2 ? [[own], "memory.events"] : [[own, ...(await tree(own))], "memory.oom_control"];
    let sum: number | undefined;
    for (const group of groups) {
      const found = /^oom_kill (\d+)$/m.exec((await read(join(group, file))) ?? "");
      if (found !== null) sum = (sum ?? 0) + Number(found[1]);
    }
    return sum;
  }

  /** The group's usage, as far as the kernel measures it. */
  async usage(mark: string): Promise<SliverUsage> {
    const parts = [...this.layout.controllers].map(async ([controller, { version, mount }]) => {
      const counters = COUNTERS[controller]?.[version] ?? [];
      const files = [...new Set(counters.map(({ file }) => file))];
      const texts = files.map(async (file) => [file, await this.#counter(mark, file, mount)] as const);
      return readUsage(counters, new Map(await Promise.all(texts)));
    });
    return Object.assign({}, ...(await Promise.all(parts)));
  }

  /** A file of the controller, or of one that counts for it in a hierarchy of its own. */
  async #counter(mark: string, file: string, mount: string): Promise<string | undefined> {
    for (const place of new Set([mount, ...this.layout.hierarchies.map((one) => one.mount)])) {
      const text = await read(join(place, PARENT, mark, file));
      if (text !== undefined) return text;
    }
    return undefined;
  }

  /** Lifts all limits of io: a process that waits at one ends only when its reads and writes are done. A group that is gone is no error. */
  async lift(mark: string): Promise<void> {
    const io = this.layout.controllers.get("io");
    if (io === undefined) return;
    const own = join(io.mount, PARENT, mark);
    for (const group of [own, ...(await tree(own))])
      for (const { file, value } of await liftingWrites(io.version, (name) => read(join(group, name))))
        await put(join(group, file), value).catch(() => undefined);
  }

  /**
   * Kills all processes; resolves when none is left. The kernel does it where there is v2, also in groups that were made inside, whatever
   * their number. Elsewhere v1's freezer keeps killed processes from forking, so that a fork bomb ends too.
   */
  async kill(mark: string, signal: AbortSignal, part = ""): Promise<void> {
    const frozen = this.layout.controllers.get("freezer");
    const state = frozen && join(frozen.mount, PARENT, mark, part, "freezer.state");
    const whole = this.#whole;
    for (let wait = FIRST_LOOK; ; wait = Math.min(2 * wait, SLOWEST_LOOK)) {
      if (!(await this.#holds(mark, part))) return;
      signal.throwIfAborted();
      const killed =
        whole !== undefined &&
        (await succeeds(put(join(whole.mount, PARENT, mark, part, "cgroup.kill"), "1")));
      // For v1, and for kernels before 5.14, which have no cgroup.kill.
      if (!killed) {
        if (state !== undefined) await put(state, "FROZEN").catch(() => undefined);
        for (const pid of await this.processes(mark, part)) end(pid);
      }
      if (state !== undefined) await put(state, "THAWED").catch(() => undefined);
      await sleep(this.#clock, wait, signal);
    }
  }

  /** The hierarchy that counts the processes of a whole tree. LXC starts processes in every one, also in a v2 without controllers. */
  get #whole(): Hierarchy | undefined {
    return this.layout.hierarchies.find(({ version }) => version === 2);
  }

  /** Whether a process is left, in any hierarchy. */
  async #holds(mark: string, part: string): Promise<boolean> {
    const whole = this.#whole;
    const events = whole && (await read(join(whole.mount, PARENT, mark, part, "cgroup.events")));
    if (events !== undefined) return POPULATED.test(events);
    return (await this.processes(mark, part)).length > 0;
  }

  /** Stops or continues the group's processes, except LXC's own. `kill` also ends frozen processes. Throws MachineError. */
  async freeze(mark: string, frozen: boolean): Promise<void> {
    const old = this.layout.controllers.get("freezer");
    const mount = (old ?? this.layout.hierarchies.find(({ version }) => version === 2))?.mount;
    if (mount === undefined) throw new MachineError("this machine has no freezer controller");
    const group = join(mount, PARENT, mark, "payload");
    if (old !== undefined) await put(join(group, "freezer.state"), frozen ? "FROZEN" : "THAWED");
    else await put(join(group, "cgroup.freeze"), frozen ? "1" : "0");
  }

  /** Waits up to `limit` milliseconds until the processes have ended by themselves. */
  async emptied(mark: string, limit: number, signal: AbortSignal): Promise<void> {
    const end = this.#clock.monotonic() + limit;
    for (let wait = FIRST_LOOK; this.#clock.monotonic() < end; wait = Math.min(2 * wait, SLOWEST_LOOK)) {
      if (!(await this.#holds(mark, ""))) return;
      await sleep(this.#clock, wait, signal);
    }
  }

  /** Removes the groups; they must have no process. */
  async remove(mark: string, signal: AbortSignal): Promise<void> {
    for (const { mount } of this.layout.hierarchies) {
      const own = join(mount, PARENT, mark);
      // The kernel releases a group a moment after its last process has ended.
      for (let wait = FIRST_LOOK; !(await removeTree(own, signal)); wait = Math.min(2 * wait, SLOWEST_LOOK))
        await sleep(this.#clock, wait, signal);
    }
    const memory = this.layout.controllers.get("memory");
    if (memory?.version === 2 && (await read(join(memory.mount, PARENT, GUARANTEE))) !== undefined)
      await this.#guaranteeAll(memory.mount);
  }

  /**
   * Removes groups without a process, except those of `marks`. Where a machine in namespaces of its own was killed, its groups stay:
   * they belong to no sliver, and must not hold an index.
   */
  async sweep(marks: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    for (const mark of await this.list()) {
      if (marks.has(mark) || (await this.populated(mark, ""))) continue;
      for (const { mount } of this.layout.hierarchies) await removeTree(join(mount, PARENT, mark), signal);
    }
  }

  /** Removes the group of all slivers, on a machine without slivers. */
  async removeParent(signal: AbortSignal): Promise<void> {
    for (const { mount } of this.layout.hierarchies) await removeTree(join(mount, PARENT), signal);
  }

  /** Sets the parent's memory guarantee to the sum of its slivers': a guarantee is only effective within that of the group above. */
  #guaranteeAll(mount: string): Promise<void> {
    return this.#turn.run(async () => {
      const parent = join(mount, PARENT);
      let sum = 0;
      for (const name of await folders(parent))
        sum += Number((await read(join(parent, name, GUARANTEE)))?.trim() ?? 0);
      await put(join(parent, GUARANTEE), String(sum));
    });
  }

  /**
   * What a new group needs before it can take processes or limits: with v1 its cpuset is empty at first and takes no process; with v2
   * the group above must pass each controller on.
   */
  async #prepare({ version, mount }: Hierarchy, above: string, group: string): Promise<void> {
    const has = (name: "cpuset" | "memory") => this.layout.controllers.get(name)?.mount === mount;
    if (version === 1 && has("cpuset"))
      for (const file of ["cpuset.cpus", "cpuset.mems"])
        if ((await read(join(group, file)))?.trim() === "")
          await put(join(group, file), (await read(join(above, file)))!.trim());
    if (version === 1 && has("cpuset")) await put(join(group, "cgroup.clone_children"), "1");
    if (version === 1) return;
    const ours = [...this.layout.controllers]
      .filter(([, one]) => one.mount === mount)
      .map(([name]) => `+${name}`);
    if (ours.length > 0) await put(join(above, "cgroup.subtree_control"), ours.join(" "));
  }
}

/** The process may have ended since it was listed. */
function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
