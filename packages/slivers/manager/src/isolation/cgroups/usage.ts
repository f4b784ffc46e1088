import type { SliverUsage, UsageKey } from "@nodeyard/sliver-protocol";
import type { Controller } from "./limits.ts";

/** A number in a file of a control group. */
export interface Counter {
  /** Under which the report has it; its unit is described there. */
  readonly key: UsageKey;
  readonly file: string;
  /** Its first group matches the number; several matches are added up. */
  readonly pattern: RegExp;
  /** How many of the kernel's units one reported unit is; default 1. */
  readonly units?: number;
  /** The file has a number for each device: before the first use it has none, which is 0. */
  readonly isPerDevice?: true;
}

/** The file holds one number. */
const ALL = /^(\d+)$/gm;
/** Share of the last ten seconds in which some process waited. */
const PRESSURE = /^some avg10=([\d.]+)/gm;

/** The same in both versions. */
const PIDS: readonly Counter[] = [
  { key: "pids", file: "pids.current", pattern: ALL },
  { key: "pidsRefused", file: "pids.events", pattern: /^max (\d+)$/gm },
];

function perDevice(file: string, patterns: Readonly<Partial<Record<UsageKey, RegExp>>>): Counter[] {
  return Object.entries(patterns).map(([key, pattern]) => ({
    key: key as UsageKey,
    file,
    pattern,
    isPerDevice: true,
  }));
}

/**
 * Counters by the controller of their file, for v1 and v2 (Linux documentation, admin-guide/cgroup-v1 and cgroup-v2.rst). v1 has no
 * pressure.
 */
export const COUNTERS: Readonly<Partial<Record<Controller, Readonly<Record<1 | 2, readonly Counter[]>>>>> = {
  memory: {
    1: [
      { key: "memory", file: "memory.usage_in_bytes", pattern: ALL },
      { key: "memoryPeak", file: "memory.max_usage_in_bytes", pattern: ALL },
    ],
    2: [
      { key: "memory", file: "memory.current", pattern: ALL },
      { key: "memoryPeak", file: "memory.peak", pattern: ALL },
      { key: "memoryPressure", file: "memory.pressure", pattern: PRESSURE },
    ],
  },
  cpu: {
    1: [
      // Of cpuacct, which is mounted with cpu or alone.
      { key: "cpu", file: "cpuacct.usage", pattern: ALL, units: 1_000_000 },
      { key: "throttled", file: "cpu.stat", pattern: /^throttled_time (\d+)$/gm, units: 1_000_000 },
    ],
    2: [
      { key: "cpu", file: "cpu.stat", pattern: /^usage_usec (\d+)$/gm, units: 1000 },
      { key: "throttled", file: "cpu.stat", pattern: /^throttled_usec (\d+)$/gm, units: 1000 },
      { key: "cpuPressure", file: "cpu.pressure", pattern: PRESSURE },
    ],
  },
  pids: { 1: PIDS, 2: PIDS },
  io: {
    1: [
      ...perDevice("blkio.throttle.io_service_bytes_recursive", {
        ioRead: / Read (\d+)$/gm,
        ioWritten: / Write (\d+)$/gm,
      }),
      ...perDevice("blkio.throttle.io_serviced_recursive", {
        ioReadOps: / Read (\d+)$/gm,
        ioWriteOps: / Write (\d+)$/gm,
      }),
    ],
    2: [
      ...perDevice("io.stat", {
        ioRead: / rbytes=(\d+)/g,
        ioWritten: / wbytes=(\d+)/g,
        ioReadOps: / rios=(\d+)/g,
        ioWriteOps: / wios=(\d+)/g,
      }),
      { key: "ioPressure", file: "io.pressure", pattern: PRESSURE },
    ],
  },
};

/** Reads the counters from the texts of the files. A file that is not there leaves its counter out. */
export function readUsage(
  counters: readonly Counter[],
  texts: ReadonlyMap<string, string | undefined>,
): SliverUsage {
  return Object.fromEntries(
    counters.flatMap(({ key, file, pattern, units = 1, isPerDevice = false }) => {
      const text = texts.get(file);
      const found = [...(text ?? "").matchAll(pattern)].map(([, value]) => Number(value));
      if (found.length === 0 && (text === undefined || !isPerDevice)) return [];
      const sum = found.reduce((all, value) => all + value, 0);
      return [[key, units === 1 ? sum : Math.round(sum / units)]];
    }),
  );
}

/** The usage with `cpuNow` since an earlier one of the same sliver, `ms` before. A lower count began anew: the sliver was started again. */
export function withRate(usage: SliverUsage, before: SliverUsage | undefined, ms: number): SliverUsage {
  const spent = (usage.cpu ?? Number.NaN) - (before?.cpu ?? Number.NaN);
  return spent >= 0 && ms > 0 ? { ...usage, cpuNow: Math.round((spent * 1000) / ms) } : usage;
}
