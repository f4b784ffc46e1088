import type { Resource, Rspec } from "@nodeyard/sliver-protocol";

/** Default amounts of a sliver, and the minimums that a lender keeps. A resource without a minimum cannot be lent. */
export interface Policy {
  /** What a sliver gets that a document or tag says nothing of. */
  readonly defaults: Rspec;
  readonly minimums: Readonly<Partial<Record<Resource, number>>>;
}

/** Name and unit of a resource in an old manager. */
export interface WireResource {
  readonly wire: string;
  readonly resource: Resource;
  /** How many of Nodeyard's units one old unit is. */
  readonly scale: number;
}

/** A revision of the old manager: its amounts, names and units (docs/contract/slivers.md, "Loans"). */
export interface WireProfile {
  readonly name: ProfileName;
  /** Amounts of this revision, in Nodeyard's units. */
  readonly policy: Policy;
  readonly resources: readonly WireResource[];
}

/** The revisions: the seed of October 2006 and the 2.0 line of April 2012. */
export type ProfileName = "r0" | "v2";

/** The largest integer of XML-RPC. The old manager failed for larger sums. */
export const MAX_WIRE_INT = 2_147_483_647;

/** Resources for which 0 means "no cap". Such an amount can neither be lent nor increased. */
export const ZERO_IS_UNLIMITED: ReadonlySet<Resource> = new Set([
  "cpuCap",
  "ioRead",
  "ioWrite",
  "ioReadOps",
  "ioWriteOps",
]);

/** The seed's revision, 30 October 2006. */
const R0_POLICY: Policy = {
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
    // The following resources have no name in the old manager.
    cpuCap: 0,
    memoryGuarantee: 0,
    memoryCap: 0,
    pids: 4096,
    connections: 0,
    ioRead: 0,
    ioWrite: 0,
    ioReadOps: 0,
    ioWriteOps: 0,
    ioWeight: 100,
  },
  minimums: {
    cpuGuarantee: 0,
    cpuShare: 16,
    netGuarantee: 0,
    netCap: 8,
    netShare: 1,
    net2Guarantee: 0,
    net2Cap: 8,
    // Disk, memory and pids cannot be lent, because what is in use cannot be taken back (docs/contract/slivers.md, "Loans").
    cpuCap: 10,
    ioRead: 1_048_576,
    ioWrite: 1_048_576,
  },
};

/** The tip of the 2.0 line, April 2012. */
const V2_POLICY: Policy = {
  defaults: {
    ...R0_POLICY.defaults,
    netGuarantee: 0,
    net2Guarantee: 0,
    netDay: 10_546_875,
    netDayThreshold: 9_492_187,
    net2Day: 31_640_625,
    net2DayThreshold: 28_476_562,
    disk: 10_000_000,
  },
  minimums: { ...R0_POLICY.minimums, cpuShare: 32, netCap: 8_000, net2Cap: 8_000 },
};

/** Amounts of both revisions. */
export const POLICIES = { r0: R0_POLICY, v2: V2_POLICY } as const;

/** Names and units of both revisions. */
export const PROFILES: Readonly<Record<ProfileName, WireProfile>> = {
  r0: {
    name: "r0",
    policy: R0_POLICY,
    resources: resources([
      ["enabled", "enabled"],
      ["cpu_min", "cpuGuarantee"],
      ["cpu_share", "cpuShare"],
      ["net_min", "netGuarantee"],
      ["net_max", "netCap"],
      ["net2_min", "net2Guarantee"],
      ["net2_max", "net2Cap"],
      ["net_share", "netShare"],
      ["disk_max", "disk"],
    ]),
  },
  v2: {
    name: "v2",
    policy: V2_POLICY,
    resources: resources([
      ["enabled", "enabled"],
      ["cpu_pct", "cpuGuarantee", 10],
      // In the old unit a share of 1 is one of 32 parts.
      ["cpu_share", "cpuShare", 32],
      ["net_min_rate", "netGuarantee", 1000],
      ["net_max_rate", "netCap", 1000],
      ["net_share", "netShare"],
      ["net_i2_min_rate", "net2Guarantee", 1000],
      ["net_i2_max_rate", "net2Cap", 1000],
      ["net_i2_share", "net2Share"],
      ["net_max_kbyte", "netDay"],
      ["net_thresh_kbyte", "netDayThreshold"],
      ["net_i2_max_kbyte", "net2Day"],
      ["net_i2_thresh_kbyte", "net2DayThreshold"],
      ["disk_max", "disk"],
    ]),
  },
};

/** Rows of name, resource and scale; the scale is 1 by default. */
function resources(rows: readonly (readonly [string, Resource, number?])[]): readonly WireResource[] {
  return rows.map(([wire, resource, scale = 1]) => ({ wire, resource, scale }));
}
