import { type Gauge, type GaugeName, gaugeOf } from "./gauges.ts";

/** Slivers of a provider's machines; `usage` by the names and units of the sliver manager's reports. */
export interface SliverUses {
  readonly provider: string;
  readonly machines: readonly {
    readonly name: string;
    /** Why it did not answer; null: it did. */
    readonly error: string | null;
    /** What is wrong with it; absent when it does not answer. */
    readonly faults?: { readonly counting: boolean; readonly waitingThreads: number };
    /** What slivers left to later ones. */
    readonly caches?: readonly { readonly bytes: number; readonly hits: number; readonly lost: number }[];
    readonly slivers: readonly {
      readonly name: string;
      /** Id of the node that the sliver is; null: of none of this installation. */
      readonly node: string | null;
      /** What its machine counts; names that are missing are not counted there. */
      readonly usage: Readonly<Record<string, number>>;
    }[];
  }[];
}

const MS_PER_SECOND = 1000;
const PERCENT = 100;

/** By a name of the reports: the figure, what the value is divided by, and the value of the last label where there is one. */
const FIGURES: Readonly<Record<string, readonly [name: GaugeName, divisor: number, ...last: string[]]>> = {
  memory: ["sliver_memory_bytes", 1],
  memoryPeak: ["sliver_memory_peak_bytes", 1],
  memoryKills: ["sliver_memory_kills", 1],
  cpu: ["sliver_cpu_seconds", MS_PER_SECOND],
  throttled: ["sliver_throttled_seconds", MS_PER_SECOND],
  pids: ["sliver_pids", 1],
  pidsRefused: ["sliver_pids_refused", 1],
  disk: ["sliver_disk_bytes", 1],
  ioRead: ["sliver_io_bytes", 1, "read"],
  ioWritten: ["sliver_io_bytes", 1, "written"],
  ioReadOps: ["sliver_io_operations", 1, "read"],
  ioWriteOps: ["sliver_io_operations", 1, "written"],
  cpuPressure: ["sliver_pressure_ratio", PERCENT, "cpu"],
  memoryPressure: ["sliver_pressure_ratio", PERCENT, "memory"],
  ioPressure: ["sliver_pressure_ratio", PERCENT, "io"],
};

/** What slivers use, as far as their machines count it. A machine that does not answer is 0 in `sliver_machine_up`, and its slivers are absent. */
export function sliverGauges(providers: readonly SliverUses[]): readonly Gauge[] {
  return providers.flatMap(({ provider, machines }) =>
    machines.flatMap((machine) => [
      gaugeOf("sliver_machine_up", machine.error === null ? 1 : 0, provider, machine.name),
      ...(machine.faults === undefined
        ? []
        : [
            gaugeOf("sliver_machine_counting", machine.faults.counting ? 1 : 0, provider, machine.name),
            gaugeOf("sliver_machine_waiting_threads", machine.faults.waitingThreads, provider, machine.name),
          ]),
      ...(machine.caches === undefined || machine.caches.length === 0
        ? []
        : [
            gaugeOf("sliver_machine_caches", machine.caches.length, provider, machine.name),
            ...(["bytes", "hits", "lost"] as const).map((key) =>
              gaugeOf(
                `sliver_machine_cache_${key}`,
                machine.caches!.reduce((sum, cache) => sum + cache[key], 0),
                provider,
                machine.name,
              ),
            ),
          ]),
      ...machine.slivers.flatMap(({ name, node, usage }) =>
        Object.entries(FIGURES).flatMap(([key, [figure, divisor, ...last]]) => {
          const value = usage[key];
          if (value === undefined) return [];
          return [gaugeOf(figure, value / divisor, provider, machine.name, name, node ?? "", ...last)];
        }),
      ),
    ]),
  );
}
