import type { Metric, Registry } from "prom-client";
import {
  type CounterName,
  type Counters,
  counterNames,
  type DurationName,
  durationNames,
  type Histogram,
  type LevelName,
  levelNames,
} from "../../telemetry/index.ts";
import { type Gauge, type GaugeName, gaugeNames } from "../gauges.ts";
import { promName } from "../prom-names.ts";

export interface PrometheusPage {
  readonly type: string;
  readonly text: string;
}

interface Value {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** Where it is not the metric's. */
  readonly metricName?: string;
}

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly values: readonly Value[];
}

/**
 * Prometheus' page of one process. The figures are the program's own, kept once; prom-client writes them, and adds what it knows of Node
 * (processor, memory, event loop, garbage collection).
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

  async page(counters: Counters, gauges: readonly Gauge[]): Promise<PrometheusPage> {
    const registry = new this.#library.Registry();
    const add = (family: Family) => registry.registerMetric(asMetric(family));
    add({
      name: "nodeyard_build_info",
      help: "1, with the version of the program",
      type: "gauge",
      values: [{ labels: { version: this.#version }, value: 1 }],
    });
    const [counts, levels, times] = [counters.list(), counters.levels(), counters.times()];
    for (const name of namesOf<CounterName>(counterNames)) {
      const values = counts.filter((one) => one.name === name);
      add({ name: promName.counter(name), help: counterNames[name].help, type: "counter", values });
    }
    for (const name of namesOf<LevelName>(levelNames)) {
      const values = levels.filter((one) => one.name === name);
      add({ name: promName.level(name), help: levelNames[name].help, type: "gauge", values });
    }
    for (const name of namesOf<DurationName>(durationNames)) {
      const values = times.filter((one) => one.name === name).flatMap((one) => histogramValues(one));
      add({ name: promName.duration(name), help: durationNames[name].help, type: "histogram", values });
    }
    const byName = Map.groupBy(gauges, ({ name }) => name);
    for (const name of namesOf<GaugeName>(gaugeNames))
      add({
        name: promName.gauge(name),
        help: gaugeNames[name].help,
        type: "gauge",
        values: byName.get(name) ?? [],
      });
    const text = `${await registry.metrics()}\n${await this.#node.metrics()}`;
    return { type: registry.contentType, text };
  }
}

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

function namesOf<Name extends string>(table: Readonly<Record<Name, unknown>>): readonly Name[] {
  return Object.keys(table) as Name[];
}

/** A registry asks a metric for nothing but its name and what it has now. */
function asMetric(family: Family): Metric {
  return { name: family.name, get: async () => family } as unknown as Metric;
}
