import { exceeded, type LabelConfig, type Resources } from "@nodeyard/driver";
import type { NodeReport } from "@nodeyard/sliver-protocol";
import { volumesOf } from "./caches.ts";
import type { Amounts, SliverSettings } from "./rspec.ts";

/** What a machine has by names of its owner's, and has none of when it does not say so. */
const NAMED = /^(device|cache)\./;

/** What a sliver spec, a report and a label have in common. */
interface Guaranteed {
  readonly rspec: Amounts;
  readonly devices?: readonly string[];
  readonly caches?: readonly string[];
  readonly volumes?: readonly { readonly size: number }[];
}

/**
 * The amounts that a sliver is guaranteed, which reduce what its machine can still guarantee (rule 9). Whole numbers, because sums of
 * fractions of cores are not exact. Caps and shares guarantee nothing.
 */
export function guaranteesOf({ rspec, devices = [], caches = [], volumes = [] }: Guaranteed): Resources {
  const disk = volumes.reduce((sum, { size }) => sum + size, rspec.disk ?? 0);
  const counts: Record<string, number> = {};
  for (const name of devices) counts[`device.${name}`] = (counts[`device.${name}`] ?? 0) + 1;
  for (const name of caches) counts[`cache.${name}`] = 1;
  return {
    ...counts,
    instances: 1,
    millicores: rspec.cpuGuarantee ?? 0,
    cores: rspec.cpuCores ?? 0,
    ram: Math.ceil((rspec.memoryGuarantee ?? 0) / 1024),
    "disk-mib": Math.ceil(disk / 1024),
    "net-kbit": Math.ceil(((rspec.netGuarantee ?? 0) + (rspec.net2Guarantee ?? 0)) / 1000),
  };
}

/** What a sliver of this label is guaranteed. */
export function needOf(label: LabelConfig): Resources {
  const { caches, ...own } = label.own as SliverSettings;
  return guaranteesOf({ ...own, caches: caches.folders, volumes: volumesOf(caches, undefined) });
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
  for (const [name, count] of Object.entries(capacity)) if (NAMED.test(name)) limits[name] = count;
  // One core always stays shared.
  if (capacity.cores !== undefined) limits.cores = Math.max(0, capacity.cores - 1);
  return limits;
}

/** Adds limits of machines. A resource that one machine does not limit has no limit in the sum. */
export function together(limits: readonly Resources[]): Resources {
  const [first = {}, ...rest] = limits;
  const names = Object.keys(first).filter((name) => rest.every((one) => one[name] !== undefined));
  const named = limits.flatMap((one) => Object.keys(one).filter((name) => NAMED.test(name)));
  const sum = (name: string) => limits.reduce((all, one) => all + (one[name] ?? 0), 0);
  return Object.fromEntries([...new Set([...names, ...named])].map((name) => [name, sum(name)]));
}

/** The limits of a machine, and 0 of devices and caches that it does not name. */
export function limitsFor(limits: Resources, need: Resources): Resources {
  const none = Object.keys(need).flatMap((name) => (NAMED.test(name) ? [[name, 0] as const] : []));
  return { ...Object.fromEntries(none), ...limits };
}

/** The free share of the machine after `need`, for the scarcest resource. Undefined when `need` does not fit. */
export function freeShare(limits: Resources, used: Resources, need: Resources): number | undefined {
  if (exceeded(limitsFor(limits, need), used, need) !== undefined) return undefined;
  const shares = Object.entries(limits).flatMap(([name, limit]) =>
    limit > 0 ? [1 - ((used[name] ?? 0) + (need[name] ?? 0)) / limit] : [],
  );
  return Math.min(1, ...shares);
}
