import type { Rspec } from "@nodeyard/sliver-protocol";
import type { Given } from "./record.ts";

/** What a machine has for slivers, after what it keeps for itself. What is absent is not checked. */
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
}

/** A resource that admission sums up. */
export type CapacityKey = keyof Capacity;

/** What a sliver is promised of each; loans move it, and never change its sum. */
const PROMISED: Readonly<Record<CapacityKey, (rspec: Rspec) => number>> = {
  cpu: ({ cpuGuarantee }) => cpuGuarantee,
  cores: ({ cpuCores }) => cpuCores,
  memory: ({ memoryGuarantee }) => memoryGuarantee,
  net: ({ netGuarantee, net2Guarantee }) => netGuarantee + net2Guarantee,
  disk: ({ disk }) => disk,
};

/** All of them. */
export const CAPACITY_KEYS = Object.keys(PROMISED) as readonly CapacityKey[];

/** The amount of one of them that an rspec promises. */
export function promised(rspec: Rspec, key: CapacityKey): number {
  return PROMISED[key](rspec);
}

/** Whether it is promised anything: controllers and what is never made are not. */
export function takesPart({ kind, instantiation }: Pick<Given, "kind" | "instantiation">): boolean {
  return kind === "sliver" && instantiation !== "not-instantiated";
}

/** How much of each is promised. */
export class Promises {
  readonly #sums = new Map<CapacityKey, number>();
  readonly #capacity: Capacity;

  constructor(capacity: Capacity) {
    this.#capacity = capacity;
  }

  add(given: Given, sign: 1 | -1 = 1): void {
    if (!takesPart(given)) return;
    for (const key of CAPACITY_KEYS)
      this.#sums.set(key, (this.#sums.get(key) ?? 0) + sign * promised(given.rspec, key));
  }

  /** What `next` in place of `old` would take above what is there, or undefined when it fits. */
  lacks(next: Given, old?: Given): { key: CapacityKey; wanted: number; free: number } | undefined {
    if (!takesPart(next)) return undefined;
    for (const key of CAPACITY_KEYS) {
      const limit = this.#limit(key);
      const before = old !== undefined && takesPart(old) ? promised(old.rspec, key) : 0;
      const wanted = promised(next.rspec, key);
      // What was promised stays so, also where the machine has shrunk meanwhile.
      if (limit === undefined || wanted <= before) continue;
      const free = limit - (this.#sums.get(key) ?? 0) + before;
      if (wanted > free) return { key, wanted, free };
    }
    return undefined;
  }

  #limit(key: CapacityKey): number | undefined {
    const limit = this.#capacity[key];
    return key === "cores" && limit !== undefined ? Math.max(0, limit - 1) : limit;
  }
}

/** What an edge read of the machine. */
export interface MachineFacts {
  /** CPUs that this process may use. */
  readonly cores: number;
  /** KiB in all. */
  readonly memory: number;
  /** KiB of the pool that slivers' roots are in; absent: the back end has no pool of limited size. */
  readonly pool?: number;
}

/** What an operator said; what is absent is taken from the machine. */
export interface Stated {
  readonly machine: { readonly cpu?: number | undefined };
  readonly capacity: { readonly [key in keyof Capacity]?: number | undefined };
}

/** KiB that the machine keeps for itself at least. */
const OWN_MEMORY = 262_144;

/** KiB that all slivers together may have of a machine with `total` KiB. */
export function memoryOfSlivers(total: number): number {
  return Math.max(0, total - Math.max(OWN_MEMORY, Math.floor(total / 8)));
}

/**
 * What slivers share, and what they may be promised. CPU is theirs whole: against the rest of the machine they have a
 * weight, and guarantees are stated against other slivers. A quarter of the pool is left to images, which count for no
 * sliver, and to the file system, so that limits of disk can all be used at the same time.
 */
export function sharedWithSlivers(
  { machine, capacity }: Stated,
  { cores, memory, pool }: MachineFacts,
): { readonly cpu: number; readonly capacity: Capacity } {
  const cpu = machine.cpu ?? 1000 * cores;
  const found: Capacity = {
    cpu,
    memory: memoryOfSlivers(memory),
    ...(pool === undefined ? {} : { disk: Math.floor((pool * 3) / 4) }),
  };
  const stated = Object.entries(capacity).filter(([, value]) => value !== undefined);
  return { cpu, capacity: { ...found, ...Object.fromEntries(stated) } };
}
