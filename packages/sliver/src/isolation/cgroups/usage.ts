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
}

/** The file holds one number. */
const ALL = /^(\d+)$/gm;
/** Share of the last ten seconds in which some process waited. */
const PRESSURE = /^some avg10=([\d.]+)/gm;

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
  pids: {
    1: [
      { key: "pids", file: "pids.current", pattern: ALL },
      { key: "pidsRefused", file: "pids.events", pattern: /^max (\d+)$/gm },
    ],
    2: [
      { key: "pids", file: "pids.current", pattern: ALL },
      { key: "pidsRefused", file: "pids.events", pattern: /^max (\d+)$/gm },
    ],
  },
  io: {
    1: [
      { key: "ioRead", file: "blkio.throttle.io_service_bytes_recursive", pattern: / Read (\d+)$/gm },
      { key: "ioWritten", file: "blkio.throttle.io_service_bytes_recursive", pattern: / Write (\d+)$/gm },
      { key: "ioReadOps", file: "blkio.throttle.io_serviced_recursive", pattern: / Read (\d+)$/gm },
      { key: "ioWriteOps", file: "blkio.throttle.io_serviced_recursive", pattern: / Write (\d+)$/gm },
    ],
    2: [
      { key: "ioRead", file: "io.stat", pattern: / rbytes=(\d+)/g },
      { key: "ioWritten", file: "io.stat", pattern: / wbytes=(\d+)/g },
      { key: "ioReadOps", file: "io.stat", pattern: / rios=(\d+)/g },
      { key: "ioWriteOps", file: "io.stat", pattern: / wios=(\d+)/g },
      { key: "ioPressure", file: "io.pressure", pattern: PRESSURE },
    ],
  },
};

/** Reads the counters from the files' texts. A missing file or number leaves its counter out. */
export function readUsage(
  counters: readonly Counter[],
  texts: ReadonlyMap<string, string | undefined>,
): SliverUsage {
  return Object.fromEntries(
    counters.flatMap(({ key, file, pattern, units = 1 }) => {
      const found = [...(texts.get(file) ?? "").matchAll(pattern)].map(([, value]) => Number(value));
      const sum = found.reduce((all, value) => all + value, 0);
      return found.length === 0 ? [] : [[key, units === 1 ? sum : Math.round(sum / units)]];
    }),
  );
}
