import type { Rspec } from "@nodeyard/sliver-protocol";
import type { Given } from "./record.ts";

/** The resources of a machine for slivers, without what the machine itself needs. A missing resource is not checked. */
export interface Capacity {
  /** Per mille of one CPU. */
  readonly cpu?: number;
  /** Whole cores; one of them always stays shared. */
  readonly cores?: number;
  /** KiB. */
  readonly memory?: number;
  /** bit/s; both kinds of destinations together. */
  readonly net?: number;
  /** KiB. */
  readonly disk?: number;
  /** Devices of a class, and slivers that may read a cache; absent: it has none. */
  readonly [named: `${"device" | "cache"}.${string}`]: number;
}

/** A resource that admission adds up. */
export type CapacityKey = keyof Capacity;
type Amount = "cpu" | "cores" | "memory" | "net" | "disk";

/** The amount of each resource that a sliver is guaranteed. Loans move these amounts but never change their sum (rule 9). */
const PROMISED: Readonly<Record<Amount, (rspec: Rspec, given: Given) => number>> = {
  cpu: ({ cpuGuarantee }) => cpuGuarantee,
  cores: ({ cpuCores }) => cpuCores,
  memory: ({ memoryGuarantee }) => memoryGuarantee,
  net: ({ netGuarantee, net2Guarantee }) => netGuarantee + net2Guarantee,
  // A copy of a cache may change all of it, and then shares nothing with the cache.
  disk: ({ disk }, { volumes = [] }) => volumes.reduce((sum, { size }) => sum + size, disk),
};

/** All that a sliver is guaranteed. */
function guaranteesOf(given: Given): ReadonlyMap<CapacityKey, number> {
  const { rspec, devices = [], caches = [] } = given;
  const all = new Map<CapacityKey, number>(
    (Object.keys(PROMISED) as Amount[]).map((key) => [key, PROMISED[key](rspec, given)]),
  );
  for (const name of devices) all.set(`device.${name}`, (all.get(`device.${name}`) ?? 0) + 1);
  for (const name of caches) all.set(`cache.${name}`, 1);
  return all;
}

/** Whether the account is guaranteed anything: controllers and slivers that are never made are not. */
export function takesPart({ kind, instantiation }: Pick<Given, "kind" | "instantiation">): boolean {
  return kind === "sliver" && instantiation !== "not-instantiated";
}

/** The sums of guaranteed amounts. */
export class Promises {
  readonly #sums = new Map<CapacityKey, number>();
  readonly #capacity: Capacity;

  constructor(capacity: Capacity) {
    this.#capacity = capacity;
  }

  add(given: Given, sign: 1 | -1 = 1): void {
    if (!takesPart(given)) return;
    for (const [key, amount] of guaranteesOf(given))
      this.#sums.set(key, (this.#sums.get(key) ?? 0) + sign * amount);
  }

  /** The resource that `next` in place of `old` would need beyond what is free; undefined when it fits. */
  lacks(next: Given, old?: Given): { key: CapacityKey; wanted: number; free: number } | undefined {
    if (!takesPart(next)) return undefined;
    const had = old !== undefined && takesPart(old) ? guaranteesOf(old) : undefined;
    for (const [key, wanted] of guaranteesOf(next)) {
      const limit = this.#limit(key);
      const before = had?.get(key) ?? 0;
      // A guarantee that was given stays valid, even when the machine has become smaller since.
      if (limit === undefined || wanted <= before) continue;
      const free = limit - (this.#sums.get(key) ?? 0) + before;
      if (wanted > free) return { key, wanted, free };
    }
    return undefined;
  }

  #limit(key: CapacityKey): number | undefined {
    const limit = this.#capacity[key] ?? (/^(device|cache)\./.test(key) ? 0 : undefined);
    return key === "cores" && limit !== undefined ? Math.max(0, limit - 1) : limit;
  }
}

/** Facts about the machine, read in `edge/`. */
export interface MachineFacts {
  /** CPUs that this process may use. */
  readonly cores: number;
  /** KiB in all. */
  readonly memory: number;
  /** Size in KiB of the pool with the slivers' roots; absent: the back end has no pool of limited size. */
  readonly pool?: number;
}

/** Values of the configuration file. A missing value is taken from the machine. */
export interface Stated {
  readonly machine: {
    readonly cpu?: number | undefined;
    readonly devices?: Readonly<Record<string, readonly string[]>>;
    readonly highestIndex: number;
  };
  readonly isolation: { readonly caches: Readonly<Record<string, string>> };
  readonly capacity: { readonly [key in Amount]?: number | undefined };
}

/** Least memory in KiB that the machine keeps for itself. */
const OWN_MEMORY = 262_144;

/** Memory in KiB for all slivers together, on a machine with `total` KiB. */
export function memoryOfSlivers(total: number): number {
  return Math.max(0, total - Math.max(OWN_MEMORY, Math.floor(total / 8)));
}

/**
 * The resources that slivers share, and the amounts that they may be guaranteed. Slivers get the whole CPU: against the rest of the machine
 * they have the weight that guarantees need. A quarter of the pool is reserved for images, which count for no sliver, and
 * for the file system, so that all slivers can use their whole disk limit at the same time.
 */
export function sharedWithSlivers(
  { machine, capacity, isolation }: Stated,
  { cores, memory, pool }: MachineFacts,
): { readonly cpu: number; readonly capacity: Capacity } {
  const cpu = machine.cpu ?? 1000 * cores;
  const found: Capacity = {
    cpu,
    memory: memoryOfSlivers(memory),
    ...(pool === undefined ? {} : { disk: Math.floor((pool * 3) / 4) }),
  };
  const stated = Object.entries(capacity).filter(([, value]) => value !== undefined);
  const devices = Object.entries(machine.devices ?? {}).map(([name, all]) => [`device.${name}`, all.length]);
  // All slivers of the machine may read it. It is counted, so that slivers that need it go to machines that have it.
  const caches = Object.keys(isolation.caches).map((name) => [`cache.${name}`, machine.highestIndex]);
  return { cpu, capacity: { ...found, ...Object.fromEntries([...stated, ...devices, ...caches]) } };
}
