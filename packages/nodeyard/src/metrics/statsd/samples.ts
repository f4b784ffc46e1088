import type { Sample } from "../../telemetry/index.ts";
import { oldResult } from "./launch-results.ts";
import { keyPart, type StatsdSample } from "./lines.ts";

const none: readonly StatsdSample[] = [];

/**
 * What the old launcher and builder sent at such a moment, and what they should have (docs/contract/operations.md, "Statsd",
 * docs/contract/operations.md, "Figures of builders").
 */
export function samplesOf(sample: Sample): readonly StatsdSample[] {
  switch (sample.kind) {
    case "count":
      return countSamples(sample);
    case "time":
      return timeSamples(sample);
    case "level":
      return levelSamples(sample);
  }
}

type Of<Kind> = Extract<Sample, { kind: Kind }>;

function countSamples({ name, value, labels }: Of<"count">): readonly StatsdSample[] {
  const part = partOf(labels);
  switch (name) {
    case "launcher.leaked":
      return [{ key: `nodepool.provider.${part("provider")}.leaked.${part("type")}s`, type: "c", value }];
    case "builder.uploads":
      // The old builder never sent these.
      if (labels.result === "ready") return none;
      return [{ key: `nodepool.image_update_failed.${part("image")}.${part("provider")}`, type: "c", value }];
    default:
      return none;
  }
}

function timeSamples({ name, value, labels }: Of<"time">): readonly StatsdSample[] {
  const part = partOf(labels);
  switch (name) {
    case "launcher.launch":
      return launchKeys(labels).flatMap((key) => both(key, value));
    case "builder.build":
      return [{ key: `nodepool.dib_image_build.${part("image")}.status.duration`, type: "ms", value }];
    case "builder.upload":
      if (labels.result !== "ready") return none;
      return both(`nodepool.image_update.${part("image")}.${part("provider")}`, value);
    default:
      return none;
  }
}

function launchKeys(labels: Sample["labels"]): readonly string[] {
  const part = partOf(labels);
  const result = oldResult(labels.result ?? "", labels.step ?? "");
  const provider = `nodepool.launch.provider.${part("provider")}`;
  return [
    `nodepool.launch.${result}`,
    `${provider}.${result}`,
    ...(labels.az ? [`${provider}.${part("az")}.${result}`] : []),
    ...(labels.requestor ? [`nodepool.launch.requestor.${part("requestor")}.${result}`] : []),
  ];
}

function levelSamples({ name, value, labels }: Of<"level">): readonly StatsdSample[] {
  const part = partOf(labels);
  const build = `nodepool.dib_image_build.${part("image")}`;
  switch (name) {
    case "builder.image_size":
      return [{ key: `${build}.${part("format")}.size`, type: "g", value }];
    case "builder.exit_code":
      return [{ key: `${build}.status.rc`, type: "g", value }];
    case "builder.last_run":
      return [{ key: `${build}.status.last_build`, type: "g", value: Math.floor(value) }];
  }
}

function both(key: string, ms: number): readonly StatsdSample[] {
  return [
    { key, type: "ms", value: ms },
    { key, type: "c", value: 1 },
  ];
}

function partOf(labels: Sample["labels"]): (name: string) => string {
  return (name) => keyPart(labels[name] ?? "");
}
