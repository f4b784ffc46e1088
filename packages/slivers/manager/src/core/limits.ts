import type { Rspec } from "@nodeyard/sliver-protocol";
import type { SliverRecord } from "./record.ts";

/** The limits that a back end writes. They depend only on effective rspecs and the machine, not on earlier limits. */
export interface Limits {
  /** cgroup v2 `cpu.weight`, 1 to 10000. */
  readonly cpuWeight: number;
  /** The same of all slivers together, against the rest of the machine. */
  readonly allWeight: number;
  /** Per mille of one CPU; 0: no cap. Never below the guarantee. */
  readonly cpuCap: number;
  /** Network rates in bit/s, with rate <= ceil <= link. */
  readonly net: { readonly rate: number; readonly ceil: number; readonly share: number };
  readonly net2: { readonly rate: number; readonly ceil: number; readonly share: number };
}

/** Resources that all slivers of a machine share. */
export interface MachineLimits {
  /** Per mille of one CPU that all slivers share. */
  readonly cpu: number;
  /** bit/s. */
  readonly link: number;
}

/** `cpu.weight` of a group or a process that has been given no other. */
const USUAL_WEIGHT = 100;
const HIGHEST_WEIGHT = 10_000;
/** Busy processes of the rest of the machine, for each CPU, against which guarantees hold. */
const RIVALS = 4;
/** The kernel spreads processes over CPUs roughly: a sliver of one process may have more than its part of the others on its CPU. */
const SPREAD = 2;
/** Part of the CPU that slivers have at most against them: logins and sliverd itself need some of it, too. */
const MOST = 0.9;

/**
 * Computes limits. cgroups have no CPU guarantee, so weights express it: a sliver is entitled to its guarantee plus, by its share, a part
 * of what guarantees leave. The entitlements add up to the machine, so under contention each sliver gets at least its guarantee. Without
 * guarantees the weights are plain shares (docs/contract/slivers.md, "Kernel limits"). That divides what slivers get together. Where they
 * are guaranteed something, their common weight gives them as much of the machine as the guarantees need.
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
  // Weights are relative. The largest entitlement gets the highest weight, so that rounding errors are smallest.
  const largest = Math.max(1e-9, ...all.map(entitled));
  const needed = Math.max(0, ...all.map((rspec) => rspec.cpuGuarantee / Math.max(1e-9, entitled(rspec))));
  const allWeight = weightOfAll(needed, machine.cpu);
  return new Map(
    [...effective].map(([name, rspec]) => [
      name,
      {
        cpuWeight: clamp(Math.round((HIGHEST_WEIGHT * entitled(rspec)) / largest), 1, HIGHEST_WEIGHT),
        allWeight,
        // A loan may raise the guarantee above the cap, so the cap rises with it.
        cpuCap: rspec.cpuCap === 0 ? 0 : Math.max(rspec.cpuCap, rspec.cpuGuarantee),
        net: rates(rspec.netGuarantee, rspec.netCap, rspec.netShare, machine.link),
        net2: rates(rspec.net2Guarantee, rspec.net2Cap, rspec.net2Share, machine.link),
      },
    ]),
  );
}

/** `needed` is a part of the machine. The weight doubles, so that a new sliver seldom changes the limits of all others. */
function weightOfAll(needed: number, cpu: number): number {
  const rivals = (USUAL_WEIGHT * RIVALS * cpu) / 1000;
  const least = (SPREAD * rivals * needed) / (1 - needed);
  const step = USUAL_WEIGHT * 2 ** Math.ceil(Math.log2(least / USUAL_WEIGHT));
  const most = Math.min(HIGHEST_WEIGHT, Math.floor((rivals * MOST) / (1 - MOST)));
  return Math.max(USUAL_WEIGHT, Math.min(most, step));
}

/** Network rates: a guarantee above the link is the whole link, and the cap is never below the guarantee. */
function rates(guarantee: number, cap: number, share: number, link: number): Limits["net"] {
  const rate = Math.min(guarantee, link);
  return { rate, ceil: clamp(cap, rate, link), share: Math.max(1, share) };
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}

/** The cores of each sliver. */
export interface CoreSets {
  /** Cores of each sliver: reserved ones, and the shared ones if it asked for them or has no reserved core. */
  readonly cores: ReadonlyMap<string, readonly number[]>;
  /** Cores that are not reserved; never empty. */
  readonly shared: readonly number[];
  /** Number of reserved cores that a sliver requested but did not get. */
  readonly missing: ReadonlyMap<string, number>;
}

/**
 * Assigns whole cores, the oldest sliver first, so that a new sliver never moves the others. The first core of a sliver is one with the
 * most free siblings; further ones are siblings of it (docs/contract/slivers.md, "Cores"). `siblings` lists, for each core of the machine,
 * the threads of the same physical core, itself included.
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
    // The last core is never reserved: slivers without cores of their own, and the manager, need one.
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

/** Takes a free core: a sibling of one that the sliver has, else the one with the most free siblings. */
function take(free: Set<number>, taken: readonly number[], siblings: readonly (readonly number[])[]): number {
  const near = taken.flatMap((core) => siblings[core] ?? []).find((core) => free.has(core));
  const freeSiblings = (core: number) => (siblings[core] ?? []).filter((one) => free.has(one)).length;
  const widest = [...free].sort((a, b) => freeSiblings(b) - freeSiblings(a) || a - b)[0]!;
  const core = near ?? widest;
  free.delete(core);
  return core;
}

/** Without it `sort` compares texts: 10 before 9. */
function ascending(a: number, b: number): number {
  return a - b;
}
