import type { SliverConfig } from "../../core/plan.ts";

/** Controllers with limits. `freezer` is a controller of its own only in v1. */
export const CONTROLLERS = ["cpu", "cpuset", "memory", "pids", "io", "devices", "freezer"] as const;
/** Name of a controller as in v2; `io` is called `blkio` in v1. */
export type Controller = (typeof CONTROLLERS)[number];

/** A mounted hierarchy of control groups. */
export interface Hierarchy {
  readonly version: 1 | 2;
  /** Mount point. */
  readonly mount: string;
}

/** The controllers of this machine. */
export interface CgroupLayout {
  /** All mounted hierarchies, also those without a used controller, because LXC makes groups in all of them. */
  readonly hierarchies: readonly Hierarchy[];
  /** A controller is missing when the machine lacks it, or when a hierarchy that is not mounted here holds it. */
  readonly controllers: ReadonlyMap<Controller, Hierarchy>;
}

/**
 * Reads /proc/self/mountinfo for each controller: on hybrid machines some controllers are in v1 and the others in v2. `v2Controllers`
 * returns the content of `cgroup.controllers` of a mount.
 */
export function readLayout(
  mountinfo: string,
  v2Controllers: (mount: string) => readonly string[],
): CgroupLayout {
  const hierarchies: Hierarchy[] = [];
  const controllers = new Map<Controller, Hierarchy>();
  for (const line of mountinfo.split("\n")) {
    const [left, right] = line.split(" - ");
    const mount = left?.split(" ")[4]?.replaceAll("\\040", " ");
    const [type, , options] = right?.split(" ") ?? [];
    if (mount === undefined || (type !== "cgroup" && type !== "cgroup2")) continue;
    const version = type === "cgroup" ? 1 : 2;
    if (hierarchies.some((one) => one.mount === mount)) continue;
    const hierarchy = { version, mount } as const;
    hierarchies.push(hierarchy);
    const names = version === 2 ? v2Controllers(mount) : (options ?? "").split(",");
    for (const controller of CONTROLLERS)
      if (names.includes(oldName(controller, version)) && !controllers.has(controller))
        controllers.set(controller, hierarchy);
  }
  return { hierarchies, controllers };
}

/**
 * Reads /proc/1/cgroup. LXC makes its groups below the group of process 1, unless that is systemd's `/init.scope`. Below any other group,
 * limits would be written to the wrong groups. Returns that group; undefined when the place is right.
 */
export function strayingGroup(processOne: string): string | undefined {
  const groups = processOne.split("\n").map((line) => line.split(":").slice(2).join(":"));
  return groups.find((group) => !["", "/", "/init.scope"].includes(group));
}

function oldName(controller: Controller, version: 1 | 2): string {
  return controller === "io" && version === 1 ? "blkio" : controller;
}

/** Controllers without which a sliver with `nesting` makes its groups: it could freeze processes there for ever, and slow down writes of its own
 * for which every sync of the machine waits. Engines of containers need neither. */
export const KEPT = ["io", "freezer"] as const satisfies readonly Controller[];

/** The hierarchies of those. v2 freezes without a controller, and an end thaws the whole tree there. */
export function keptHierarchies({ controllers }: CgroupLayout): readonly Hierarchy[] {
  return [...new Set(KEPT.flatMap((name) => controllers.get(name) ?? []))];
}

/** A value for a file. */
export interface Write {
  readonly controller: Controller;
  readonly file: string;
  readonly value: string;
  /**
   * Written to the groups below as well (true), which do not inherit it, or only there. In v2 these are LXC's two groups, not those made
   * inside.
   */
  readonly below?: true | "only";
  /** Written to the group of all slivers instead. */
  readonly above?: true;
  /** Left out where the kernel lacks the file: of several with one meaning it may have any. */
  readonly mayLack?: true;
}

/** The limits of a sliver as files of its control groups. */
export interface LimitWrites {
  readonly writes: Write[];
  /** Limits that the machine cannot enforce. */
  readonly unenforced: readonly string[];
}

/** The memory guarantee in bytes, which other groups cannot reclaim; cgroup v2. */
export const GUARANTEE = "memory.min";
/** Microseconds. */
const PERIOD = 100_000;
/** The smallest quota that the kernel accepts, microseconds. */
const SMALLEST_QUOTA = 1000;

/**
 * The part of all slivers' memory, and of their processes, that a sliver without a cap may use. It then reaches its own limit first. At the common limit the kernel
 * would choose a process to kill among those of all slivers.
 */
const UNCAPPED = 0.75;

/** The part of a sliver's memory that its connections may have beside it in v1. All TCP of the machine has a tenth of its memory by default. */
const TCP_PART = 1 / 16;

/** Limits of io: the resource, its key in `io.max` of v2, and its file of v1 without the ends that all have. 0 is none. */
const IO_LIMITS = [
  { resource: "ioRead", key: "rbps", old: "read_bps" },
  { resource: "ioReadOps", key: "riops", old: "read_iops" },
] as const;
/**
 * Limits that are not set. `sync` of anybody on the machine waits for all writes, also for those that wait at a limit, whatever file system
 * they are of (docs/design/sliver-isolation.md).
 */
const IO_UNLIMITED = ["ioWrite", "ioWriteOps"] as const;
/** The settings that lift all limits of io, also of writes, which earlier versions set. */
const LIFTED = {
  1: ["read_bps", "read_iops", "write_bps", "write_iops"].map((old) => [`blkio.throttle.${old}_device`, "0"]),
  2: [["io.max", "rbps=max riops=max wbps=max wiops=max"]],
} as const;

/** The writes that lift each limit of io that a group has on a device; `read` gives the content of a file of the group. */
export async function liftingWrites(
  version: 1 | 2,
  read: (file: string) => Promise<string | undefined>,
): Promise<readonly { readonly file: string; readonly value: string }[]> {
  const all = LIFTED[version].map(async ([file, value]) => {
    const devices = ((await read(file!)) ?? "").matchAll(/^(\d+:\d+) /gm);
    return [...devices].map(([, device]) => ({ file: file!, value: `${device} ${value}` }));
  });
  return (await Promise.all(all)).flat();
}

/** Files for the weight of io: of bfq in both versions, of iocost in v2, and of kernels before 5.0 in v1. All take 1 (or 10) to 1000. */
const IO_WEIGHTS = { 1: ["blkio.bfq.weight", "blkio.weight"], 2: ["io.bfq.weight", "io.weight"] } as const;
const USUAL_WEIGHT = 100;
const WEIGHTS = [10, 1000] as const;

/** Whether slivers' parts of the disk's time differ from the usual one, which needs a scheduler that weighs. */
function asksForWeight({ effective }: Pick<SliverConfig, "effective">): boolean {
  return effective.ioWeight !== USUAL_WEIGHT;
}

/** The device that only the pool uses. */
export interface PoolDevice {
  /** `major:minor`. */
  readonly number: string;
  /** Its scheduler heeds weights of groups. */
  readonly weighs: boolean;
}

/** What the machine's owner says about all slivers together. */
export interface Together {
  /** Bytes. */
  readonly memory: number;
  /** Processes and threads. */
  readonly tasks: number;
  /** CPU weight against the rest of the machine (as in v2), in place of what their guarantees need. */
  readonly weight?: number | undefined;
}

type LimitInput = Pick<SliverConfig, "effective" | "limits" | "cores">;

/**
 * The limits as files of the hierarchy that has the controller (docs/contract/slivers.md, "Kernel limits"). Without `device` io is
 * not limited.
 */
export function limitWrites(
  input: LimitInput,
  { controllers, hierarchies }: CgroupLayout,
  device: PoolDevice | undefined,
  all: Together,
): LimitWrites {
  const version = (controller: Controller) => controllers.get(controller)?.version;
  const parts = [
    cpu(input, version("cpu"), all.weight),
    cpuset(input, version("cpuset")),
    memory(input, version("memory"), all.memory),
    pids(input, version("pids"), all.tasks),
    io(input, version("io"), device),
  ];
  // v2 has no controller for devices: LXC attaches a BPF program to the group.
  if (version("devices") === undefined && !hierarchies.some((one) => one.version === 2))
    parts.push(lacks("devices", "devices"));
  if (input.effective.net2Day > 0)
    parts.push(cannot("net2Day: no destinations are exempt, so all traffic counts for netDay"));
  return {
    writes: parts.flatMap(({ writes }) => writes),
    unenforced: parts.flatMap(({ unenforced }) => unenforced),
  };
}

type Version = 1 | 2 | undefined;

function cpu(
  { limits: { cpuWeight, cpuCap, allWeight } }: LimitInput,
  version: Version,
  stated: number | undefined,
): LimitWrites {
  if (version === undefined) return lacks("cpuShare, cpuCap", "cpu");
  const quota = Math.max(SMALLEST_QUOTA, Math.round((cpuCap * PERIOD) / 1000));
  const weight = (value: number) =>
    version === 2 ? { "cpu.weight": value } : { "cpu.shares": sharesOf(value) };
  const cap =
    version === 2
      ? { "cpu.max": `${cpuCap === 0 ? "max" : quota} ${PERIOD}` }
      : { "cpu.cfs_period_us": PERIOD, "cpu.cfs_quota_us": cpuCap === 0 ? -1 : quota };
  return enforced([
    ...writesOf("cpu", weight(cpuWeight)),
    ...writesOf("cpu", weight(stated ?? allWeight), { above: true }),
    // In v2 also in the groups below, where programs inside and lxcfs read it.
    ...writesOf("cpu", cap, version === 2 ? { below: true } : {}),
  ]);
}

/** `cpu.shares` of v1 for a weight of v2, by systemd's rule (1024 for 100). */
function sharesOf(weight: number): number {
  return Math.max(2, Math.round(weight * 10.24));
}

function cpuset({ cores }: LimitInput, version: Version): LimitWrites {
  if (cores === undefined) return NOTHING;
  if (version === undefined) return lacks("cpuCores", "cpuset");
  return enforced(
    writesOf("cpuset", { "cpuset.cpus": cores.join(",") }, version === 1 ? { below: true } : {}),
  );
}

function memory(
  { effective: { memoryCap, memoryGuarantee } }: LimitInput,
  version: Version,
  all: number,
): LimitWrites {
  const bytes = memoryCap > 0 ? memoryCap * 1024 : Math.floor(all * UNCAPPED);
  if (version === undefined)
    return memoryCap + memoryGuarantee > 0 ? lacks("memoryCap, memoryGuarantee", "memory") : NOTHING;
  if (version === 2)
    return enforced([
      ...writesOf("memory", { "memory.swap.max": 0 }),
      // Also in the groups below, where programs inside read it.
      ...writesOf("memory", { "memory.max": bytes }, { below: true }),
      // Kills all processes of the sliver together: a job that lost one process would continue incomplete, and fail for no visible reason.
      // LXC's own process stays.
      ...writesOf("memory", { "memory.oom.group": 1 }, { below: "only" }),
      // A guarantee of a group does not apply to the groups below, unless they have one too.
      ...writesOf("memory", { [GUARANTEE]: memoryGuarantee * 1024 }, { below: true }),
    ]);
  // v1 counts what TCP has in its buffers apart from other memory, and only in groups that have a limit of their own.
  const tcp = { "memory.kmem.tcp.limit_in_bytes": Math.floor(bytes * TCP_PART) };
  return {
    writes: [
      ...writesOf("memory", { "memory.limit_in_bytes": bytes }),
      ...writesOf("memory", tcp, { below: true, mayLack: true }),
    ],
    unenforced: memoryGuarantee > 0 ? ["memoryGuarantee: cgroup v1 protects no memory from others"] : [],
  };
}

function pids({ effective }: LimitInput, version: Version, all: number): LimitWrites {
  if (version === undefined) return effective.pids > 0 ? lacks("pids", "pids") : NOTHING;
  return enforced(writesOf("pids", { "pids.max": effective.pids || Math.floor(all * UNCAPPED) }));
}

function io(input: LimitInput, version: Version, device: PoolDevice | undefined): LimitWrites {
  const { effective } = input;
  const asks = (name: (typeof IO_LIMITS)[number]["resource"] | (typeof IO_UNLIMITED)[number]) =>
    effective[name] > 0;
  const unlimited = IO_UNLIMITED.filter(asks).join(", ");
  const unenforced =
    unlimited === ""
      ? []
      : [`${unlimited}: every sync of the machine would wait for writes that wait at a limit`];
  const limited = IO_LIMITS.map(({ resource }) => resource).filter(asks);
  const asked = [...limited, ...(asksForWeight(input) ? ["ioWeight"] : [])].join(", ");
  if (version === undefined || device === undefined) {
    const why =
      version === undefined
        ? "this machine has no io controller"
        : "the pool is on no block device of its own";
    return { writes: [], unenforced: [...unenforced, ...(asked === "" ? [] : [`${asked}: ${why}`])] };
  }
  const { number, weighs } = device;
  if (asksForWeight(input) && !weighs)
    unenforced.push("ioWeight: the kernel has no bfq, which weighs io of groups");
  const [low, high] = WEIGHTS;
  const weight = Math.min(high, Math.max(low, effective.ioWeight));
  const weights = IO_WEIGHTS[version].flatMap((file) =>
    writesOf("io", { [file]: weight }, { mayLack: true }),
  );
  if (version === 2) {
    const max = IO_LIMITS.map(({ resource, key }) => `${key}=${effective[resource] || "max"}`).join(" ");
    return { writes: [...writesOf("io", { "io.max": `${number} ${max}` }), ...weights], unenforced };
  }
  const limits = IO_LIMITS.flatMap(({ resource, old }) =>
    writesOf("io", { [`blkio.throttle.${old}_device`]: `${number} ${effective[resource]}` }, { below: true }),
  );
  return { writes: [...limits, ...weights], unenforced };
}

const NOTHING: LimitWrites = { writes: [], unenforced: [] };

/** Values for files of one controller that are written alike. */
function writesOf(
  controller: Controller,
  files: Readonly<Record<string, string | number>>,
  how: Pick<Write, "below" | "above" | "mayLack"> = {},
): Write[] {
  return Object.entries(files).map(([file, value]) => ({ controller, file, value: String(value), ...how }));
}

function enforced(writes: Write[]): LimitWrites {
  return { writes, unenforced: [] };
}

function lacks(what: string, controller: Controller): LimitWrites {
  return cannot(`${what}: this machine has no ${controller} controller`);
}

function cannot(line: string): LimitWrites {
  return { writes: [], unenforced: [line] };
}
