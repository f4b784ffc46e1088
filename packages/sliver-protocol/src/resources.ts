/** A resource of a sliver in the one vocabulary that everything inside uses. All amounts are whole numbers. */
export type Resource = keyof typeof UNITS;

/**
 * Resources with their units. The old names and units of each wire profile are translated at the edge
 * (docs/contract/slivers.md, "Loans"); the second half has no old name.
 */
export const UNITS = {
  /** 1: the sliver may run and be logged in to; 0: suspended. */
  enabled: "boolean",
  /** What is left of the CPU under contention; at most what admission lets through. */
  cpuGuarantee: "per mille of one CPU",
  /** Part of what guarantees leave over. */
  cpuShare: "1/32 of a default share",
  /** Whole cores of its own. */
  cpuCores: "cores",
  /** 1: also the cores that nobody has for himself. */
  cpuCoresBestEffort: "boolean",
  netGuarantee: "bit/s",
  netCap: "bit/s",
  netShare: "weight",
  /** The same towards exempt destinations (the old Internet2). */
  net2Guarantee: "bit/s",
  net2Cap: "bit/s",
  net2Share: "weight",
  netDay: "KiB per day",
  netDayThreshold: "KiB per day",
  net2Day: "KiB per day",
  net2DayThreshold: "KiB per day",
  disk: "KiB",

  /** 0: no cap. */
  cpuCap: "per mille of one CPU",
  memoryGuarantee: "KiB",
  /** 0: no cap, here and below. */
  memoryCap: "KiB",
  pids: "processes",
  connections: "connections",
  ioRead: "bytes/s",
  ioWrite: "bytes/s",
} as const;

export const RESOURCES = Object.keys(UNITS) as readonly Resource[];

/** Every resource has an amount. */
export type Rspec = Readonly<Record<Resource, number>>;

/** Largest amount: sums over every sliver of a machine stay exact. */
export const MAX_AMOUNT = 1_000_000_000_000;

export function isResource(name: string): name is Resource {
  return Object.hasOwn(UNITS, name);
}
