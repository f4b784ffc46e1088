import {
  counterNames,
  durationNames,
  type Labels,
  levelNames,
  type Measure,
  type Sample,
} from "../../telemetry/index.ts";
import { type GaugeName, gaugeNames } from "../gauges.ts";
import { builderSamples } from "./builder-samples.ts";
import { gaugeKey } from "./gauge-keys.ts";
import type { StatsdSample } from "./lines.ts";
import { samplesOf } from "./samples.ts";

const HOST = "HOST";
/** A result that every kind of figure has a key for. */
const RESULTS = ["ready", "failed"] as const;

/** Every key that is ever sent, with names in capitals for what stands there: made by what sends them. */
export function allKeys(): readonly Pick<StatsdSample, "key" | "type">[] {
  const samples = [...sampleKeys(), ...gaugeKeys(), ...builderKeys()];
  const byKey = new Map(samples.map(({ key, type }) => [`${key} ${type}`, { key, type }]));
  return [...byKey.values()].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

function sampleKeys(): readonly StatsdSample[] {
  const kinds = [
    ["count", counterNames],
    ["time", durationNames],
    ["level", levelNames],
  ] as const;
  return kinds.flatMap(([kind, table]) =>
    Object.entries<Measure & { readonly details?: readonly string[] }>(table).flatMap(([name, measure]) =>
      RESULTS.flatMap((result) => {
        const labels = { ...placeholders([...measure.labels, ...(measure.details ?? [])]), result };
        return samplesOf({ kind, name, value: 1, labels } as Sample).map((sample) => ({
          ...sample,
          key: sample.key.replace(/^(nodepool\.launch\..*?)(ready|error\.unknown)$/, "$1RESULT"),
        }));
      }),
    ),
  );
}

function gaugeKeys(): readonly StatsdSample[] {
  return Object.entries<Measure>(gaugeNames).flatMap(([name, { labels }]) => {
    const key = gaugeKey({ name: name as GaugeName, labels: placeholders(labels), value: 0 }, HOST);
    if (key === undefined) return [];
    // Workers of either kind have a key of their own.
    const kinds = name === "workers" ? ["build", "upload"] : [""];
    return kinds.map((kind) => ({ key: key.replace("KIND", kind), type: "g" as const, value: 0 }));
  });
}

function builderKeys(): readonly StatsdSample[] {
  const image = "IMAGE";
  return builderSamples({
    host: HOST,
    work: [],
    images: [{ image, paused: false }],
    uploads: [{ image, provider: "PROVIDER", paused: false }],
    requests: 0,
  });
}

function placeholders(labels: readonly string[]): Labels {
  return Object.fromEntries(labels.map((label) => [label, label.toUpperCase()]));
}
