import type { Measure } from "@nodeyard/telemetry";

/**
 * Gauges that are computed when they are read. Units are seconds and bytes, as Prometheus recommends. Their help is the text of the
 * reference; the order of the labels is that of the values in `gaugeOf`.
 */
export const gaugeNames = {
  nodes: gauge("Nodes by state", "state"),
  provider_nodes: gauge("Nodes of a provider by state", "provider", "state"),
  label_nodes: gauge("Nodes by label and state; one with several labels counts for each", "label", "state"),
  provider_oldest_deleting_timestamp_seconds: gauge(
    "Since when the node of a provider that waits longest for its deletion does so",
    "provider",
  ),
  standing: gauge(
    "1 for how a provider, host, label, image, launcher, builder or sliver machine stands: good, degraded, failing or unknown",
    "kind",
    "name",
    "standing",
  ),
  provider_waiting_calls: gauge(
    "Requests to the cloud's API that wait for the provider's rate limit",
    "provider",
  ),
  provider_free_calls: gauge("How many more may wait for the rate limit before requests fail", "provider"),
  provider_call_interval_seconds: gauge(
    "Time between two requests to the cloud's API: what is configured, or more while the cloud asks for it",
    "provider",
  ),
  breaker_open: gauge(
    "1 while launches of a type in a zone have failed in a row and none has succeeded since",
    "provider",
    "az",
    "type",
  ),
  provider_cost_per_hour: gauge(
    "What the nodes of a provider cost an hour, as far as it is known",
    "provider",
    "currency",
  ),
  label_cost_per_hour: gauge(
    "The same of a label; of that of a backing node what its slots in use leave",
    "label",
    "currency",
  ),
  tenant_cost_per_hour: gauge("The same of the nodes that a tenant has", "tenant", "currency"),
  tenant_nodes: gauge("Nodes that a tenant has", "tenant"),
  tenant_waiting_requests: gauge("Requests of a tenant that are not accepted", "tenant"),
  tenant_weight: gauge("Weight of a tenant, where there are shares", "tenant"),
  tenant_budget: gauge("What a tenant may spend this month", "tenant", "currency"),
  tenant_spent: gauge("What it has spent of it", "tenant", "currency"),
  requests: gauge("Node requests by state", "state"),
  label_oldest_request_timestamp_seconds: gauge(
    "When the oldest request for a label that is not fulfilled was made, those for min-ready nodes left out",
    "label",
  ),
  pool_addressable_requests: gauge(
    "Requests, in whatever state, all of whose labels a pool of some launcher has",
    "provider",
    "pool",
  ),
  provider_max_servers: gauge(
    "Nodes that the pools of a provider may have, where that has a limit",
    "provider",
  ),
  tenant_limit: gauge("What the nodes of a tenant may use together", "tenant", "resource"),
  image_builds: gauge(
    "Builds of a diskimage by state; `deleting` ones wait for the clean-up",
    "image",
    "state",
  ),
  image_uploads: gauge("Uploads of a diskimage by state", "image", "provider", "state"),
  image_last_build_timestamp_seconds: gauge("When the newest build became ready", "image"),
  image_last_upload_timestamp_seconds: gauge("When the newest upload became ready", "image", "provider"),
  image_build_requested: gauge("1 while a build is requested and has not started", "image"),
  image_paused: gauge("1 while builds of it are paused by hand", "image"),
  work_bytes: gauge("Bytes that a build has written, or an upload has sent", "kind", "image", "provider"),
  work_expected_bytes: gauge("Bytes in all, where known", "kind", "image", "provider"),
  work_bytes_per_second: gauge("Its mean rate", "kind", "image", "provider"),
  work_elapsed_seconds: gauge("How long it has been running", "kind", "image", "provider"),
  work_remaining_seconds: gauge("Estimated time left, where known", "kind", "image", "provider"),
  work_step: gauge("1 for the current step of an upload", "kind", "image", "provider", "step"),
  workers: gauge("Builds or uploads that may run at once here", "kind"),
  ready: gauge("1 while the process does its work, as /ready says"),
  tree_connected: gauge("1 while the process is connected to the tree"),
  tree_clock_offset_seconds: gauge(
    "The tree's time less this machine's, as the answers to writes say; 0 before the first, and where this process keeps the tree",
  ),
  clock_trusted: gauge("0 after a clock has jumped, while nothing is deleted because of its age; 1 else"),
  view_complete: gauge("1 while everything that the tree holds is known"),
  tree_calls: gauge("Calls to the tree that wait for an answer"),
  tree_reads_pending: gauge(
    "Reads still needed to catch up with the tree: for events, or in a full comparison (playback)",
    "cache",
    "queue",
  ),
  sliver_machine_up: gauge(
    "1 when a machine of which nodes are slivers answered, 0 when it did not",
    "provider",
    "machine",
  ),
  sliver_machine_counting: gauge(
    "1 while disk limits of a machine do not hold, because its file system has lost count and counts again",
    "provider",
    "machine",
  ),
  sliver_machine_waiting_threads: gauge(
    "Operations of its sliver manager on files that have waited for half a minute",
    "provider",
    "machine",
  ),
  sliver_machine_caches: gauge("Caches that slivers of a machine left to later ones", "provider", "machine"),
  sliver_machine_cache_bytes: gauge("Bytes in them", "provider", "machine"),
  sliver_machine_cache_hits: gauge(
    "Slivers that began with a copy of one that is there now",
    "provider",
    "machine",
  ),
  sliver_machine_cache_lost: gauge(
    "Versions of them that another one replaced which did not come of them",
    "provider",
    "machine",
  ),
  sliver_memory_bytes: sliver("Memory that a sliver has now"),
  sliver_memory_peak_bytes: sliver("The most that it had since its start"),
  sliver_memory_kills: sliver("Processes that the kernel killed because its memory was full"),
  sliver_cpu_seconds: sliver("Processor time since its start"),
  sliver_throttled_seconds: sliver("Time since its start in which its cap of CPU held it back"),
  sliver_pids: sliver("Processes and threads that it has now"),
  sliver_pids_refused: sliver("How often one more was refused"),
  sliver_disk_bytes: sliver("Bytes of its disk that it uses, half a minute old at most"),
  sliver_io_bytes: sliver("Bytes that it read from its disk and wrote to it", "direction"),
  sliver_io_operations: sliver("Operations in which it read from its disk and wrote to it", "direction"),
  sliver_pressure_ratio: sliver(
    "Part of the last ten seconds in which something of it waited, where the machine counts it (cgroup v2)",
    "resource",
  ),
  statsd_lost: gauge("Lines that could not be sent to the statsd server"),
} as const satisfies Readonly<Record<string, Measure>>;

/** Names of the gauges, as on Prometheus' page. */
export type GaugeName = keyof typeof gaugeNames;

/** One figure of one moment. */
export interface Gauge {
  readonly name: GaugeName;
  readonly labels: Readonly<Record<string, string>>;
  /** Seconds for times and durations, bytes for sizes, 0 or 1 for states. */
  readonly value: number;
}

/** A gauge, or a figure that only statsd has. */
export type Figure = Omit<Gauge, "name"> & { readonly name: string };

/** With the labels in the order of the name's; throws where their number is another, which is a fault of the code. */
export function gaugeOf(name: GaugeName, value: number, ...labels: readonly string[]): Gauge {
  const keys: readonly string[] = gaugeNames[name].labels;
  if (keys.length !== labels.length) throw new TypeError(`${name} has the labels ${keys.join(", ")}`);
  return { name, value, labels: Object.fromEntries(keys.map((key, at) => [key, labels[at]!])) };
}

/** A row of the table: its help and its labels, whose names become part of the type. */
function gauge<const Labels extends readonly string[]>(help: string, ...labels: Labels): Measure<Labels> {
  return { help, labels };
}

/** Of one sliver; with the id of its node, which is empty where it is no node of this installation. */
function sliver<const Labels extends readonly string[]>(help: string, ...labels: Labels) {
  return gauge(help, "provider", "machine", "sliver", "node", ...labels);
}
