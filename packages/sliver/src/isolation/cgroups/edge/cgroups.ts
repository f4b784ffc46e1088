import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, sleep } from "@nodeyard/runtime";
import type { SliverUsage } from "@nodeyard/sliver-protocol";
import { MachineError } from "../../../errors.ts";
import { inTurn } from "../../../in-turn.ts";
import { type CgroupLayout, GUARANTEE, type Hierarchy, readLayout, sharesOf, type Write } from "../limits.ts";
import { COUNTERS, readUsage } from "../usage.ts";

/** Groups of slivers are below this one, so that all slivers together compete with the rest of the machine. */
export const PARENT = "nodeyard-slivers";
/** Milliseconds between looks at a group that is to become empty: first, and at most. */
const FIRST_LOOK = 2;
const SLOWEST_LOOK = 100;

/** Control groups of slivers, written in this process. `mark` names a sliver's group. */
export class Cgroups {
  readonly layout: CgroupLayout;
  readonly #clock: Clock;
  /** One sum at a time: a later one has seen what an earlier one has. */
  readonly #turn = inTurn();

  constructor(layout: CgroupLayout, clock: Clock) {
    this.layout = layout;
    this.#clock = clock;
  }

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

  /** Every group of a sliver that there is. */
  async list(): Promise<string[]> {
    const found = new Set<string>();
    for (const { mount } of this.layout.hierarchies)
      for (const name of await folders(join(mount, PARENT))) found.add(name);
    return [...found];
  }

  /**
   * Makes a sliver's group in every hierarchy. Of all slivers together: `weight` is theirs against the rest, as in v2, and `memory` the
   * bytes that they may have, so that those without a limit of their own leave the rest of the machine what it needs.
   */
  async make(mark: string, weight: number, memory: number): Promise<void> {
    for (const hierarchy of this.layout.hierarchies) {
      const parent = join(hierarchy.mount, PARENT);
      await mkdir(parent, { recursive: true });
      await this.#prepare(hierarchy, hierarchy.mount, parent);
      const own = join(parent, mark);
      await mkdir(own, { recursive: true });
      await this.#prepare(hierarchy, parent, own);
    }
    const all = {
      cpu: [{ "cpu.shares": sharesOf(weight) }, { "cpu.weight": weight }],
      memory: [{ "memory.limit_in_bytes": memory }, { "memory.max": memory, "memory.swap.max": 0 }],
    } as const;
    for (const controller of ["cpu", "memory"] as const) {
      const found = this.layout.controllers.get(controller);
      if (found === undefined) continue;
      for (const [file, value] of Object.entries(all[controller][found.version - 1]!))
        await put(join(found.mount, PARENT, file), String(value));
    }
  }

  async apply(mark: string, writes: readonly Write[]): Promise<void> {
    for (const { controller, file, value, below } of writes) {
      const { mount, version } = this.layout.controllers.get(controller)!;
      const own = join(mount, PARENT, mark);
      const lower =
        version === 1
          ? tree
          : async (group: string) => (await folders(group)).map((name) => join(group, name));
      const groups = [...(below === "only" ? [] : [own]), ...(below === undefined ? [] : await lower(own))];
      if (file === "cpuset.cpus") await writeCpus(groups, value);
      else for (const group of groups) await put(join(group, file), value);
      // Memory and swap together, where v1 counts swap: else what memory may not hold goes there without an end.
      if (file === "memory.limit_in_bytes")
        await put(join(own, "memory.memsw.limit_in_bytes"), value).catch(() => undefined);
      if (file === GUARANTEE) await this.#guaranteeAll(mount);
    }
  }

  /** Numbers of its processes, in this machine's numbering. */
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
   * Whether a process is in it, by one look: what LXC started is in every hierarchy, and nothing inside can leave one.
   * Cheap enough for every sliver of a report; before acting on one, ask for its processes.
   */
  async populated(mark: string, part: string): Promise<boolean> {
    const hierarchy = this.layout.controllers.get("pids") ?? this.layout.hierarchies[0];
    if (hierarchy === undefined) return false;
    const top = join(hierarchy.mount, PARENT, mark, part);
    if (hierarchy.version === 2) return /^populated 1$/m.test((await read(join(top, "cgroup.events"))) ?? "");
    const holds = async (group: string) => ((await read(join(group, "cgroup.procs"))) ?? "") !== "";
    if (await holds(top)) return true;
    for (const group of await tree(top)) if (await holds(group)) return true;
    return false;
  }

  /** Processes that the kernel killed because the memory of the group was full. Undefined: nobody counts, or there is no group. */
  async memoryKills(mark: string): Promise<number | undefined> {
    const memory = this.layout.controllers.get("memory");
    if (memory === undefined) return undefined;
    const own = join(memory.mount, PARENT, mark);
    // v1 counts in the group of the process alone, and LXC's is below.
    const [groups, file] =
      memory.version === 2 ? [[own], "memory.events"] : [[own, ...(await tree(own))], "memory.oom_control"];
    let sum: number | undefined;
    for (const group of groups) {
      const found = /^oom_kill (\d+)$/m.exec((await read(join(group, file))) ?? "");
      if (found !== null) sum = (sum ?? 0) + Number(found[1]);
    }
    return sum;
  }

  /** What it uses, as far as the kernel counts. */
  async usage(mark: string): Promise<SliverUsage> {
    const parts = [...this.layout.controllers].map(async ([controller, { version, mount }]) => {
      const counters = COUNTERS[controller]?.[version] ?? [];
      const files = [...new Set(counters.map(({ file }) => file))];
      const texts = files.map(async (file) => [file, await read(join(mount, PARENT, mark, file))] as const);
      return readUsage(counters, new Map(await Promise.all(texts)));
    });
    return Object.assign({}, ...(await Promise.all(parts)));
  }

  /** Resolves when no process is in it. What was killed may not fork meanwhile, so that a fork bomb ends too. */
  async kill(mark: string, signal: AbortSignal, part = ""): Promise<void> {
    const frozen = this.layout.controllers.get("freezer");
    for (let wait = FIRST_LOOK; ; wait = Math.min(2 * wait, SLOWEST_LOOK)) {
      if ((await this.processes(mark, part)).length === 0) return;
      signal.throwIfAborted();
      for (const { mount, version } of this.layout.hierarchies)
        if (version === 2)
          await put(join(mount, PARENT, mark, part, "cgroup.kill"), "1").catch(() => undefined);
      const state = frozen && join(frozen.mount, PARENT, mark, part, "freezer.state");
      if (state !== undefined) await put(state, "FROZEN").catch(() => undefined);
      for (const pid of await this.processes(mark, part)) end(pid);
      if (state !== undefined) await put(state, "THAWED").catch(() => undefined);
      await sleep(this.#clock, wait, signal);
    }
  }

  /** Its processes stop where they are, or go on; LXC's own does not stop. `kill` ends frozen ones, too. Throws MachineError. */
  async freeze(mark: string, frozen: boolean): Promise<void> {
    const old = this.layout.controllers.get("freezer");
    const mount = (old ?? this.layout.hierarchies.find(({ version }) => version === 2))?.mount;
    if (mount === undefined) throw new MachineError("this machine has no freezer controller");
    const group = join(mount, PARENT, mark, "payload");
    if (old !== undefined) await put(join(group, "freezer.state"), frozen ? "FROZEN" : "THAWED");
    else await put(join(group, "cgroup.freeze"), frozen ? "1" : "0");
  }

  /** Waits at most `limit` milliseconds for its processes to end by themselves. */
  async emptied(mark: string, limit: number, signal: AbortSignal): Promise<void> {
    const end = this.#clock.monotonic() + limit;
    for (let wait = FIRST_LOOK; this.#clock.monotonic() < end; wait = Math.min(2 * wait, SLOWEST_LOOK)) {
      if ((await this.processes(mark)).length === 0) return;
      await sleep(this.#clock, wait, signal);
    }
  }

  /** Resolves when its groups are gone; nothing may run in them. */
  async remove(mark: string, signal: AbortSignal): Promise<void> {
    for (const { mount } of this.layout.hierarchies) {
      const own = join(mount, PARENT, mark);
      // The kernel lets go of a group a moment after its last process.
      for (let wait = FIRST_LOOK; !(await removeTree(own)); wait = Math.min(2 * wait, SLOWEST_LOOK))
        await sleep(this.#clock, wait, signal);
    }
    const memory = this.layout.controllers.get("memory");
    if (memory?.version === 2 && (await read(join(memory.mount, PARENT, GUARANTEE))) !== undefined)
      await this.#guaranteeAll(memory.mount);
  }

  /** Of a machine without slivers; nothing may be made meanwhile. */
  async removeParent(): Promise<void> {
    for (const { mount } of this.layout.hierarchies) await removeTree(join(mount, PARENT));
  }

  /** A guarantee is worth what the group above has: the parent protects as much as its slivers do together. */
  #guaranteeAll(mount: string): Promise<void> {
    return this.#turn(async () => {
      const parent = join(mount, PARENT);
      let sum = 0;
      for (const name of await folders(parent))
        sum += Number((await read(join(parent, name, GUARANTEE)))?.trim() ?? 0);
      await put(join(parent, GUARANTEE), String(sum));
    });
  }

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

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** In v1 a group never has fewer cores than one below it: all get the union first, then the lower ones what is new. */
async function writeCpus(groups: readonly string[], cpus: string): Promise<void> {
  const [own, ...below] = groups;
  const before = (await read(join(own!, "cpuset.cpus")))?.trim() ?? "";
  await put(join(own!, "cpuset.cpus"), before === "" ? cpus : `${before},${cpus}`);
  for (const group of below.toReversed()) await put(join(group, "cpuset.cpus"), cpus);
  await put(join(own!, "cpuset.cpus"), cpus);
}

async function put(file: string, value: string): Promise<void> {
  try {
    // Never create: a file that is missing here is a controller that is missing.
    await writeFile(file, value, { flag: "r+" });
  } catch (cause) {
    throw new MachineError(`${file} does not take ${value}: ${(cause as Error).message}`, { cause });
  }
}

async function read(file: string): Promise<string | undefined> {
  return readFile(file, "utf8").catch(() => undefined);
}

async function folders(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries.filter((one) => one.isDirectory()).map(({ name }) => name);
}

/** Groups below, outer ones first. */
async function tree(group: string): Promise<string[]> {
  const below: string[] = [];
  for (const name of await folders(group)) below.push(join(group, name), ...(await tree(join(group, name))));
  return below;
}

/** False when a group is busy still. */
async function removeTree(group: string): Promise<boolean> {
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
