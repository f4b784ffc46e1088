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

export type CapacityKey = keyof Capacity;

/** What a sliver is promised of each; loans move it, and never change its sum. */
const PROMISED: Readonly<Record<CapacityKey, (rspec: Rspec) => number>> = {
  cpu: ({ cpuGuarantee }) => cpuGuarantee,
  cores: ({ cpuCores }) => cpuCores,
  memory: ({ memoryGuarantee }) => memoryGuarantee,
  net: ({ netGuarantee, net2Guarantee }) => netGuarantee + net2Guarantee,
  disk: ({ disk }) => disk,
};

export const CAPACITY_KEYS = Object.keys(PROMISED) as readonly CapacityKey[];

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
