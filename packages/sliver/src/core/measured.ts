import type { Capacity } from "./capacity.ts";

/** What an edge read of the machine. */
export interface MachineFacts {
  /** CPUs that this process may use. */
  readonly cores: number;
  /** KiB in all. */
  readonly memory: number;
  /** KiB of the pool that slivers' roots are in; absent: there is none that could be full. */
  readonly pool?: number;
}

/** What an operator said; what is absent is taken from the machine. */
export interface Stated {
  readonly machine: { readonly cpu?: number | undefined };
  readonly capacity: { readonly [key in keyof Capacity]?: number | undefined };
}

/** KiB that the machine keeps for itself at least. */
const OWN_MEMORY = 262_144;

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
  const own = Math.max(OWN_MEMORY, Math.floor(memory / 8));
  const found: Capacity = {
    cpu,
    memory: Math.max(0, memory - own),
    ...(pool === undefined ? {} : { disk: Math.floor((pool * 3) / 4) }),
  };
  const stated = Object.entries(capacity).filter(([, value]) => value !== undefined);
  return { cpu, capacity: { ...found, ...Object.fromEntries(stated) } };
}
