import type { Rspec } from "@nodeyard/sliver-protocol";
import type { SliverRecord } from "./record.ts";

/** What a back end writes. A function of effective rspecs and of the machine alone: nothing depends on what was before. */
export interface Limits {
  /** cgroup v2 `cpu.weight`, 1 to 10000. */
  readonly cpuWeight: number;
  /** Per mille of one CPU; 0: none. Never below the guarantee. */
  readonly cpuCap: number;
  /** Network rates in bit/s: rate <= ceil <= link. */
  readonly net: { readonly rate: number; readonly ceil: number; readonly share: number };
  readonly net2: { readonly rate: number; readonly ceil: number; readonly share: number };
}

/** What all slivers of a machine share. */
export interface MachineLimits {
  /** Per mille of one CPU that all slivers share. */
  readonly cpu: number;
  /** bit/s. */
  readonly link: number;
}

/**
 * There is no file for a CPU guarantee, so weights carry it: a sliver is entitled to its guarantee and, by shares,
 * a part of what guarantees leave. Entitlements sum to the machine, so under contention each gets at least its
 * guarantee; with no guarantees at all, it is plain shares (docs/contract/slivers.md, "Kernel limits").
 */
export function computeLimits(
  effective: ReadonlyMap<string, Rspec>,
  machine: MachineLimits,
): Map<string, Limits> {
  const all = [...effective.values()];
  const guarantees = all.reduce((sum, { cpuGuarantee }) => sum + cpuGuarantee, 0);
  const shares = all.reduce((sum, { cpuShare }) => sum + cpuShare, 0);
  const rest = Math.max(0, machine.cpu - guarantees);
  const entitled = ({ cpuGuarantee, cpuShare }: Rspec) =>
    cpuGuarantee + (shares === 0 ? 0 : (rest * cpuShare) / shares);
  const largest = Math.max(1e-9, ...all.map(entitled));
  return new Map(
    [...effective].map(([name, rspec]) => [
      name,
      {
        cpuWeight: clamp(Math.round((10_000 * entitled(rspec)) / largest), 1, 10_000),
        // A borrower's cap rises with its guarantee.
        cpuCap: rspec.cpuCap === 0 ? 0 : Math.max(rspec.cpuCap, rspec.cpuGuarantee),
        net: rates(rspec.netGuarantee, rspec.netCap, rspec.netShare, machine.link),
        net2: rates(rspec.net2Guarantee, rspec.net2Cap, rspec.net2Share, machine.link),
      },
    ]),
  );
}

function rates(guarantee: number, cap: number, share: number, link: number): Limits["net"] {
  const rate = Math.min(guarantee, link);
  return { rate, ceil: clamp(cap, rate, link), share: Math.max(1, share) };
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}

/** Which cores each sliver runs on. */
export interface CoreSets {
  /** Cores of each sliver, its own and, where it asked so or has none, the shared ones. */
  readonly cores: ReadonlyMap<string, readonly number[]>;
  /** Cores that no sliver has for itself; never empty. */
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
