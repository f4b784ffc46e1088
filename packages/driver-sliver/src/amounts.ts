import { exceeded, type LabelConfig, type Resources } from "@nodeyard/driver";
import type { NodeReport, Resource } from "@nodeyard/sliver-protocol";
import type { SliverLabelOwn } from "./config.ts";

type Amounts = Readonly<Partial<Record<Resource, number>>>;

/**
 * The amounts that a sliver is guaranteed, which reduce what its machine can still guarantee (rule 9). Whole numbers, because sums of
 * fractions of cores are not exact. Caps and shares guarantee nothing.
 */
export function promised(rspec: Amounts): Resources {
  return {
    instances: 1,
    millicores: rspec.cpuGuarantee ?? 0,
    cores: rspec.cpuCores ?? 0,
    ram: Math.ceil((rspec.memoryGuarantee ?? 0) / 1024),
    "disk-mib": Math.ceil((rspec.disk ?? 0) / 1024),
    "net-kbit": Math.ceil(((rspec.netGuarantee ?? 0) + (rspec.net2Guarantee ?? 0)) / 1000),
  };
}

export function needOf(label: LabelConfig): Resources {
  return promised((label.own as SliverLabelOwn).rspec);
}

/** Names of the machine's capacities, and how many of the machine's units one unit of the driver is. */
const CAPACITY: readonly (readonly [name: string, theirs: string, units: number])[] = [
  ["instances", "slivers", 1],
  ["millicores", "cpu", 1],
  ["ram", "memory", 1024],
  ["disk-mib", "disk", 1024],
  ["net-kbit", "net", 1000],
];

/** The most that the machine can guarantee. A missing name means that the machine does not limit it. */
export function capacityOf({ capacity }: NodeReport): Resources {
  const limits: Record<string, number> = {};
  for (const [name, theirs, units] of CAPACITY) {
    const amount = capacity[theirs];
    if (amount !== undefined) limits[name] = Math.floor(amount / units);
  }
  // One core always stays shared.
  if (capacity.cores !== undefined) limits.cores = Math.max(0, capacity.cores - 1);
  return limits;
}

/** Adds limits of machines. A resource that one machine does not limit has no limit in the sum. */
export function together(limits: readonly Resources[]): Resources {
  const [first = {}, ...rest] = limits;
  const names = Object.keys(first).filter((name) => rest.every((one) => one[name] !== undefined));
  return Object.fromEntries(names.map((name) => [name, limits.reduce((sum, one) => sum + one[name]!, 0)]));
}

/** The free share of the machine after `need`, for the scarcest resource. Undefined when `need` does not fit. */
export function freeShare(limits: Resources, used: Resources, need: Resources): number | undefined {
  if (exceeded(limits, used, need) !== undefined) return undefined;
  const shares = Object.entries(limits).flatMap(([name, limit]) =>
    limit > 0 ? [1 - ((used[name] ?? 0) + (need[name] ?? 0)) / limit] : [],
  );
  return Math.min(1, ...shares);
}
