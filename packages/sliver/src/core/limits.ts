import type { Rspec } from "@nodeyard/sliver-protocol";

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

export interface MachineLimits {
  /** Per mille of one CPU that all slivers share. */
  readonly cpu: number;
  /** bit/s. */
  readonly link: number;
}

/**
 * There is no file for a CPU guarantee, so weights carry it: everybody's entitlement is his guarantee and, by shares,
 * a part of what guarantees leave. Entitlements sum to the machine, so under contention each gets at least his
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
        // A borrower's cap goes up with his guarantee.
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
