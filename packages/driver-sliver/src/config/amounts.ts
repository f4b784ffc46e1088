import type { Resource } from "@nodeyard/sliver-protocol";

/** A key of a label that is an amount. */
export interface AmountKey {
  readonly key: string;
  readonly resource: Resource;
  /** How much of the resource one of the key is. */
  readonly scale: number;
  readonly description: string;
  readonly unit?: string;
  /** What is asked for when the key is absent; undefined: nothing is, and the manager's default holds. */
  readonly missing?: number;
  readonly shown?: string;
}

/**
 * All amounts of a label. What is promised is always said, so that what a label needs does not depend on the managers'
 * defaults; of the rest only what the file says.
 */
export const AMOUNT_KEYS: readonly AmountKey[] = [
  {
    key: "cpu-guarantee",
    resource: "cpuGuarantee",
    scale: 1,
    description: "CPU that it has under any contention.",
    unit: "thousandths of a core",
    missing: 0,
  },
  {
    key: "cpu-share",
    resource: "cpuShare",
    scale: 1,
    description: "Part of what guarantees leave; 32 is a usual share, 64 twice as much.",
    shown: "32",
  },
  {
    key: "cpu-cap",
    resource: "cpuCap",
    scale: 1,
    description: "CPU at most; 0: no cap.",
    unit: "thousandths of a core",
    shown: "0",
  },
  { key: "cores", resource: "cpuCores", scale: 1, description: "Whole cores of its own.", missing: 0 },
  {
    key: "memory-guarantee",
    resource: "memoryGuarantee",
    scale: 1024,
    description: "Memory that others cannot take.",
    unit: "MiB",
    missing: 0,
  },
  {
    key: "memory",
    resource: "memoryCap",
    scale: 1024,
    description: "Memory at most; 0: no cap.",
    unit: "MiB",
    shown: "0",
  },
  { key: "pids", resource: "pids", scale: 1, description: "Processes and threads at most.", shown: "4096" },
  {
    key: "disk",
    resource: "disk",
    scale: 1024,
    description: "Disk at most, promised as well.",
    unit: "MiB",
    missing: 2048,
  },
  {
    key: "net-guarantee",
    resource: "netGuarantee",
    scale: 1000,
    description: "Traffic that it has under any contention.",
    unit: "kbit/s",
    missing: 0,
  },
  {
    key: "net-cap",
    resource: "netCap",
    scale: 1000,
    description: "Traffic at most.",
    unit: "kbit/s",
    shown: "1000000",
  },
  {
    key: "connections",
    resource: "connections",
    scale: 1,
    description: "Connections at most; 0: no cap.",
    shown: "0",
  },
  {
    key: "io-read",
    resource: "ioRead",
    scale: 1024,
    description: "Reading from its disk at most; 0: no cap.",
    unit: "KiB/s",
    shown: "0",
  },
  {
    key: "io-write",
    resource: "ioWrite",
    scale: 1024,
    description: "Writing to its disk at most; 0: no cap.",
    unit: "KiB/s",
    shown: "0",
  },
];
