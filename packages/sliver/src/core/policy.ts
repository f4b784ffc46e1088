import type { Resource, Rspec } from "@nodeyard/sliver-protocol";

/** What a sliver has when nobody says, and what a lender keeps. A resource without a minimum cannot be lent. */
export interface Policy {
  readonly defaults: Rspec;
  readonly minimums: Readonly<Partial<Record<Resource, number>>>;
}

/** Resources that have no old name. Disk, memory and pids cannot be lent: what is in use cannot be taken back (8.11). */
const OURS = {
  defaults: {
    cpuCap: 0,
    memoryGuarantee: 0,
    memoryCap: 0,
    pids: 4096,
    connections: 0,
    ioRead: 0,
    ioWrite: 0,
  },
  minimums: { cpuCap: 10, ioRead: 1_048_576, ioWrite: 1_048_576 },
} as const;

/** Where 0 means "no cap": nobody can lend what he has no measure of, nor be lent a cap where he had none. */
export const ZERO_IS_UNLIMITED: ReadonlySet<Resource> = new Set(["cpuCap", "ioRead", "ioWrite"]);

/** The seed's revision, 30 October 2006 (docs/contract/slivers.md, "Loans"). */
const R0: Policy = {
  defaults: {
    enabled: 1,
    cpuGuarantee: 0,
    cpuShare: 32,
    cpuCores: 0,
    cpuCoresBestEffort: 1,
    netGuarantee: 8,
    netCap: 1_000_000_000,
    netShare: 1,
    net2Guarantee: 8,
    net2Cap: 1_000_000_000,
    net2Share: 1,
    netDay: 0,
    netDayThreshold: 0,
    net2Day: 0,
    net2DayThreshold: 0,
    disk: 5_000_000,
    ...OURS.defaults,
  },
  minimums: {
    cpuGuarantee: 0,
    cpuShare: 16,
    netGuarantee: 0,
    netCap: 8,
    netShare: 1,
    net2Guarantee: 0,
    net2Cap: 8,
    ...OURS.minimums,
  },
};

/** The tip of the 2.0 line, April 2012 (docs/contract/slivers.md, "Loans"). */
const V2: Policy = {
  defaults: {
    ...R0.defaults,
    netGuarantee: 0,
    net2Guarantee: 0,
    netDay: 10_546_875,
    netDayThreshold: 9_492_187,
    net2Day: 31_640_625,
    net2DayThreshold: 28_476_562,
    disk: 10_000_000,
  },
  minimums: { ...R0.minimums, cpuShare: 32, netCap: 8_000, net2Cap: 8_000 },
};

export const POLICIES = { r0: R0, v2: V2 } as const;
