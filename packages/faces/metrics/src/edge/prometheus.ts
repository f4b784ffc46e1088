import {
  type CounterName,
  type Counters,
  counterNames,
  type DurationName,
  durationNames,
  type Histogram,
  type LevelName,
  levelNames,
} from "@nodeyard/telemetry";
import type { Metric, Registry } from "prom-client";
import { type Gauge, type GaugeName, gaugeNames } from "../gauges.ts";

/** Suffixes by the rules of Prometheus (https://prometheus.io/docs/practices/naming/). */
const UNITS: Readonly<Record<LevelName, string>> = {
  "builder.exit_code": "",
  "builder.image_size": "_bytes",
  "builder.last_run": "_timestamp_seconds",
  "config.last_reload_successful": "",
  "config.last_reload_success": "_timestamp_seconds",
  "config.file_modified": "_timestamp_seconds",
  "journal.size": "_bytes",
  "journal.last_write": "_timestamp_seconds",
};

/** What figures are called on Prometheus' page: `nodeyard_`, the room's part with `_` for dots, and the unit. */
export const promName = {
  counter: (name: CounterName) => `nodeyard_${name.replaceAll(".", "_")}_total`,
  duration: (name: DurationName) => `nodeyard_${name.replaceAll(".", "_")}_seconds`,
  level: (name: LevelName) => `nodeyard_${name.replaceAll(".", "_")}${UNITS[name]}`,
  gauge: (name: GaugeName) => `nodeyard_${name}`,
};

/** One sample of a metric, in the form that prom-client's registry prints. */
interface Value {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** Where it is not the metric's. */
  readonly metricName?: string;
}

/** A metric with all of its samples, in the form of prom-client's `get`. */
interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly values: readonly Value[];
}

/**
 * The Prometheus page of one process. The program keeps the figures; prom-client formats them and adds those of Node (processor, memory,
 * event loop, garbage collection).
 */
export class PrometheusExporter {
  readonly #library: typeof import("prom-client");
  readonly #node: Registry;
  readonly #version: string;

  /** Loads the library, and begins to watch the process. Not before: commands that serve nothing start sooner without. */
  static async start(version: string): Promise<PrometheusExporter> {
    return new PrometheusExporter(await import("prom-client"), version);
  }

  private constructor(library: typeof import("prom-client"), version: string) {
    this.#library = library;
    this.#node = new library.Registry();
    this.#version = version;
    library.collectDefaultMetrics({ register: this.#node });
  }

  /**
   * The page, and its content type. The figures are read at the call and not changed by it. Concurrent calls do not disturb each
   * other.
   */
  async page(
    counters: Counters,
    gauges: readonly Gauge[],
  ): Promise<{ readonly type: string; readonly text: string }> {
    // A registry for this page alone: it only formats, and nothing of it is kept.
    const registry = new this.#library.Registry();
    const add = (family: Family) => registry.registerMetric(asMetric(family));
    add({
      name: "nodeyard_build_info",
      help: "1, with the version of the program",
      type: "gauge",
      values: [{ labels: { version: this.#version }, value: 1 }],
    });
    /** Every name of a table has its family, with or without values. */
    const addAll = <Name extends string, One extends { readonly name: Name }>(
      type: Family["type"],
      table: Readonly<Record<Name, { readonly help: string }>>,
      nameOf: (name: Name) => string,
      all: readonly One[],
      valuesOf: (one: One) => readonly Value[],
    ) => {
      const byName = Map.groupBy(all, ({ name }) => name);
      for (const name of Object.keys(table) as Name[]) {
        const values = (byName.get(name) ?? []).flatMap(valuesOf);
        add({ name: nameOf(name), help: table[name].help, type, values });
      }
    };
    const itself = <One extends Value>(one: One) => [{ labels: one.labels, value: one.value }];
    addAll("counter", counterNames, promName.counter, counters.list(), itself);
    addAll("gauge", levelNames, promName.level, counters.levels(), itself);
    addAll("histogram", durationNames, promName.duration, counters.times(), histogramValues);
    addAll("gauge", gaugeNames, promName.gauge, gauges, itself);
    // Node's own figures are collected by this call.
    const text = `${await registry.metrics()}\n${await this.#node.metrics()}`;
    return { type: registry.contentType, text };
  }
}

/** The series of one histogram: cumulative buckets, sum and count (https://prometheus.io/docs/instrumenting/exposition_formats/). */
function histogramValues({ name, labels, atMost, count, sumSeconds }: Histogram): readonly Value[] {
  const metric = promName.duration(name);
  return [
    ...durationNames[name].buckets.map((le, at) => ({
      metricName: `${metric}_bucket`,
      labels: { ...labels, le },
      value: atMost[at]!,
    })),
    { metricName: `${metric}_bucket`, labels: { ...labels, le: "+Inf" }, value: count },
    { metricName: `${metric}_sum`, labels, value: sumSeconds },
    { metricName: `${metric}_count`, labels, value: count },
  ];
}

/** A metric for the registry, which only reads its name and current values. */
function asMetric(family: Family): Metric {
  return { name: family.name, get: async () => family } as unknown as Metric;
}
