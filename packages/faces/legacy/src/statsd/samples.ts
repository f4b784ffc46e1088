import type { Figure } from "@nodeyard/metrics";
import type { Sample } from "@nodeyard/telemetry";
import { keyPart, type StatsdSample } from "./lines.ts";

/** Labels of a figure by name; `samplesOf` and `gaugeSamples` add `result` and `host`. */
type Labels = Readonly<Record<string, string>>;

/** A key of the old hierarchy: `{label}` stands for that label of the figure, `{host}` for this machine's name. */
export interface OldKey {
  readonly key: string;
  /** What is sent under the key: a timing may be counted, too. */
  readonly types: readonly StatsdSample["type"][];
  /** Only figures with these labels have the key; absent: all. */
  readonly when?: (labels: Labels) => boolean;
}

const sent = (key: string, types: OldKey["types"], when?: OldKey["when"]): OldKey => ({
  key,
  types,
  ...(when && { when }),
});
const gauge = (key: string, when?: OldKey["when"]): OldKey => sent(key, ["g"], when);
/** A timing and a counter under one key, as Python's client sends them. */
const BOTH = ["ms", "c"] as const;
const LAUNCH = "nodepool.launch";
const BUILD = "nodepool.dib_image_build.{image}";
const BUILDER = "nodepool.builder.{host}";
const LAUNCHER = "nodepool.launcher.{host}";

/**
 * What the old launcher and builder sent, and what their documentation promised, by the name of our figure
 * (docs/contract/operations.md, "Statsd", "Figures of the whole" and "Figures of builders"). A figure that is not here has no old key.
 */
export const oldKeys: Readonly<Record<string, readonly OldKey[]>> = {
  nodes: [gauge("nodepool.nodes.{state}")],
  provider_nodes: [gauge("nodepool.provider.{provider}.nodes.{state}")],
  label_nodes: [gauge("nodepool.label.{label}.nodes.{state}")],
  pool_addressable_requests: [gauge("nodepool.provider.{provider}.pool.{pool}.addressable_requests")],
  provider_max_servers: [gauge("nodepool.provider.{provider}.max_servers")],
  tenant_limit: [gauge("nodepool.tenant_limits.{tenant}.{resource}")],
  image_build_requested: [gauge("nodepool.image.{image}.image_build_requests")],
  image_last_build_timestamp_seconds: [gauge("nodepool.image.{image}.last_ready_build")],
  image_last_upload_timestamp_seconds: [
    gauge("nodepool.image.{image}.provider.{provider}.last_ready_upload"),
  ],
  tree_calls: [gauge(`${LAUNCHER}.zk.client.connection_queue`)],
  tree_reads_pending: [gauge(`${LAUNCHER}.zk.{cache}_cache.{queue}_queue`)],
  workers: [
    gauge(`${BUILDER}.build_workers`, ({ kind }) => kind === "build"),
    gauge(`${BUILDER}.upload_workers`, ({ kind }) => kind === "upload"),
  ],
  // Of builders, and for statsd alone.
  build_requests: [gauge("nodepool.image_build_requests")],
  build_state: [gauge(`${BUILDER}.image.{image}.build.state`)],
  upload_state: [gauge(`${BUILDER}.image.{image}.provider.{provider}.upload.state`)],
  builds: [gauge(`${BUILDER}.current_builds`)],
  uploads: [gauge(`${BUILDER}.current_uploads`)],
  "launcher.leaked": [sent("nodepool.provider.{provider}.leaked.{type}s", ["c"])],
  "launcher.launch": [
    sent(`${LAUNCH}.{result}`, BOTH),
    sent(`${LAUNCH}.provider.{provider}.{result}`, BOTH),
    sent(`${LAUNCH}.provider.{provider}.{az}.{result}`, BOTH, ({ az }) => az !== ""),
    sent(`${LAUNCH}.requestor.{requestor}.{result}`, BOTH, ({ requestor }) => requestor !== ""),
  ],
  // As openstacksdk sent them where clouds.yaml gave it this prefix.
  "provider.api_call": [sent("nodepool.task.{provider}.{operation}", BOTH)],
  "builder.build": [sent(`${BUILD}.status.duration`, ["ms"])],
  "builder.upload": [
    sent("nodepool.image_update.{image}.{provider}", BOTH, ({ result }) => result === "ready"),
  ],
  // The old builder counted failures only.
  "builder.uploads": [
    sent("nodepool.image_update_failed.{image}.{provider}", ["c"], ({ result }) => result !== "ready"),
  ],
  "builder.image_size": [gauge(`${BUILD}.{format}.size`)],
  "builder.exit_code": [gauge(`${BUILD}.status.rc`)],
  "builder.last_run": [gauge(`${BUILD}.status.last_build`)],
};

/** What a figure of one moment is in the old hierarchy. A timing counts as one occurrence, too, where the old programs counted it. */
export function samplesOf({ kind, name, value, labels }: Sample): readonly StatsdSample[] {
  const result = kind === "time" && name === "launcher.launch" ? { result: oldResult(labels) } : {};
  // The old builder sent whole seconds.
  const whole = name === "builder.last_run" ? Math.floor(value) : value;
  return samples(name, { ...labels, ...result }, whole, kind === "time" ? 1 : value);
}

/** Gauges that have a place in the old hierarchy. `host` is this machine's name. */
export function gaugeSamples(gauges: readonly Figure[], host: string): readonly StatsdSample[] {
  return gauges.flatMap(({ name, labels, value }) => samples(name, { ...labels, host }, value, value));
}

/** One sample for each old key of a figure and each of its types. `count` is what a counter adds. */
function samples(name: string, labels: Labels, value: number, count: number): readonly StatsdSample[] {
  return (oldKeys[name] ?? [])
    .filter(({ when }) => when?.(labels) ?? true)
    .flatMap(({ key, types }) => {
      const filled = key.replace(/\{(\w+)\}/g, (_, label: string) => partOf(label, labels[label] ?? ""));
      return types.map((type) => ({ key: filled, type, value: type === "c" ? count : value }));
    });
}

/** A result is a name of the old launcher's, and an operation one of the old client's, with levels of their own. */
function partOf(label: string, text: string): string {
  return label === "result" || label === "operation" ? text : keyPart(text);
}

/** Nodepool's name for the result of a launch, with the step that failed (docs/contract/operations.md, "Results of launches"). */
function oldResult({ result = "", step }: Labels): string {
  if (result === "ready") return "ready";
  if (step === "scan" && (result === "timeout" || result === "host-key")) return "error.keyscan";
  return `error.${OLD_RESULTS[result] ?? "unknown"}`;
}

/** Kinds of our errors and Nodepool's words for them; others are "unknown". */
const OLD_RESULTS: Readonly<Record<string, string>> = {
  quota: "quota",
  capacity: "capacity",
  timeout: "servercreatetimeout",
  "host-key": "keyscan",
  lost: "zksession",
  "image-gone": "nodepool",
};
