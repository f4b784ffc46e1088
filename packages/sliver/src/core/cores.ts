import type { Rspec } from "@nodeyard/sliver-protocol";
import type { SliverRecord } from "./record.ts";

export interface CoreSets {
  /** Cores of each sliver, its own and, where it asked so or has none, the shared ones. */
  readonly cores: ReadonlyMap<string, readonly number[]>;
  /** Cores that nobody has for himself; never empty. */
  readonly shared: readonly number[];
  /** Cores that a sliver wanted and did not get. */
  readonly missing: ReadonlyMap<string, number>;
}

/**
 * Whole cores, oldest sliver first, so that a new one never moves the others. The first core of a sliver is one with
 * most free siblings, the next ones are siblings of it (docs/contract/slivers.md, "Cores"). `siblings` lists, for each core of the
 * machine, the threads of the same physical core, itself included.
 */
export function assignCores(
  records: ReadonlyMap<string, SliverRecord>,
  effective: ReadonlyMap<string, Rspec>,
  siblings: readonly (readonly number[])[],
): CoreSets {
  const free = new Set(siblings.keys());
  const own = new Map<string, number[]>();
  const missing = new Map<string, number>();
  const byAge = [...records.values()]
    .filter(({ name }) => effective.has(name))
    .sort((a, b) => a.local.incarnation - b.local.incarnation);
  for (const { name } of byAge) {
    const wanted = effective.get(name)!.cpuCores;
    const taken: number[] = [];
    while (taken.length < wanted && free.size > 1) taken.push(take(free, taken, siblings));
    own.set(name, taken);
    if (taken.length < wanted) missing.set(name, wanted - taken.length);
  }
  const shared = [...free].sort(ascending);
  const cores = new Map<string, readonly number[]>();
  for (const [name, taken] of own) {
    const also = taken.length === 0 || effective.get(name)!.cpuCoresBestEffort > 0;
    cores.set(name, [...taken, ...(also ? shared : [])].sort(ascending));
  }
  return { cores, shared, missing };
}

function take(free: Set<number>, taken: readonly number[], siblings: readonly (readonly number[])[]): number {
  const near = taken.flatMap((core) => siblings[core] ?? []).find((core) => free.has(core));
  const freeSiblings = (core: number) => (siblings[core] ?? []).filter((one) => free.has(one)).length;
  const widest = [...free].sort((a, b) => freeSiblings(b) - freeSiblings(a) || a - b)[0]!;
  const core = near ?? widest;
  free.delete(core);
  return core;
}

function ascending(a: number, b: number): number {
  return a - b;
}
