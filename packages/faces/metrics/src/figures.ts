import {
  BREAKERS,
  failureKey,
  imageBuildStates,
  imageUploadStates,
  MIN_READY,
  subjectOf,
} from "@nodeyard/model";
import type { View } from "@nodeyard/view";
import { type Figure, type Gauge, gaugeOf } from "./gauges.ts";

/** The caches of the old launcher, and what part of the tree each covers. */
const CACHES: Readonly<Record<string, string>> = {
  "/nodepool/nodes": "node",
  "/nodepool/requests": "request",
  "/nodepool/images": "image",
};

/** How far the view is behind the tree (docs/contract/operations.md, "Figures of the whole"). */
export function backlogGauges(view: View): readonly Gauge[] {
  return [...view.backlog()].flatMap(([root, { events, walk }]) => {
    // Roots that the old launcher did not have, such as `/nodeyard`, have no figure.
    const cache = CACHES[root];
    if (cache === undefined) return [];
    return [
      gaugeOf("tree_reads_pending", events, cache, "event"),
      gaugeOf("tree_reads_pending", walk, cache, "playback"),
    ];
  });
}

/** The limits of a configuration. */
export interface Limits {
  /** By provider, those of its pools. */
  readonly maxServers: ReadonlyMap<string, readonly number[]>;
  /** By tenant and resource. */
  readonly tenants: ReadonlyMap<string, Readonly<Record<string, number>>>;
}

/** Gauges of limits; an infinite limit has no gauge. One unlimited pool makes the sum of its provider infinite. */
export function limitGauges({ maxServers, tenants }: Limits): readonly Gauge[] {
  const sums = [...maxServers].map(([provider, pools]) => {
    const sum = pools.reduce((so, far) => so + far, 0);
    return gaugeOf("provider_max_servers", sum, provider);
  });
  const limits = [...tenants].flatMap(([tenant, resources]) =>
    Object.entries(resources).map(([resource, limit]) => gaugeOf("tenant_limit", limit, tenant, resource)),
  );
  return [...sums, ...limits].filter(({ value }) => Number.isFinite(value));
}

/** The longest waits, their tenants, and offerings without launches. Computed on each call: few records of a tree are waiting. */
export function waitingGauges({ nodes, requests, own }: View): readonly Gauge[] {
  // `state_time` is when the state was written, so it is the time since which the node has been waiting.
  const deleting = new Oldest();
  for (const id of nodes.byState.get("deleting")) {
    const { provider, stateTime } = nodes.byId.get(id)!.record;
    if (provider !== null) deleting.add(provider, stateTime);
  }
  const waiting = new Oldest();
  for (const state of ["requested", "pending"])
    for (const id of requests.byState.get(state)) {
      const { nodeTypes, requestor, createdTime, stateTime } = requests.byId.get(id)!.record;
      if (requestor === MIN_READY) continue;
      // Requests for backing nodes have no time of creation; the time of their state is the best that is known.
      for (const label of nodeTypes) waiting.add(label, createdTime ?? stateTime);
    }
  // The record of an offering stands as long as its breaker is not closed again; probes beneath it are left out.
  const closed = [...own.keys()].flatMap((path) => {
    const key = path.startsWith(`${BREAKERS}/`) ? failureKey(path) : undefined;
    const subject = key === undefined || path !== `${BREAKERS}/${key}` ? undefined : subjectOf(key);
    return subject?.scope === "offering" ? [subject] : [];
  });
  return [
    ...deleting.list().map(([name, at]) => gaugeOf("provider_oldest_deleting_timestamp_seconds", at, name)),
    ...waiting.list().map(([name, at]) => gaugeOf("label_oldest_request_timestamp_seconds", at, name)),
    ...closed.map(({ provider, az, type }) => gaugeOf("breaker_open", 1, provider, az ?? "", type)),
  ];
}

/** The earliest instant of each name, seconds since the epoch. */
class Oldest {
  readonly #at = new Map<string, number>();

  add(name: string, at: number | null): void {
    if (at !== null) this.#at.set(name, Math.min(at, this.#at.get(name) ?? at));
  }

  list(): readonly (readonly [string, number])[] {
    return [...this.#at];
  }
}

/** A provider as one launcher has it. */
export interface ProviderFigures {
  readonly name: string;
  /** The rate limit; absent: the provider is not open, or has none of its own. */
  readonly pace?:
    | { readonly waiting: number; readonly free: number; readonly intervalMs: number }
    | undefined;
}

/** The free places of the rate limits of providers. */
export function providerGauges(providers: readonly ProviderFigures[]): readonly Gauge[] {
  return providers.flatMap(({ name, pace }) =>
    pace === undefined
      ? []
      : [
          gaugeOf("provider_waiting_calls", pace.waiting, name),
          gaugeOf("provider_free_calls", pace.free, name),
          gaugeOf("provider_call_interval_seconds", pace.intervalMs / 1000, name),
        ],
  );
}

/** A tenant, as a launcher counts. */
export interface TenantFigures {
  readonly tenant: string | null;
  readonly nodes: number;
  readonly waiting: number;
  readonly weight: number | null;
  readonly budget: { readonly amount: number; readonly currency: string; readonly spent: number } | null;
}

/** Not of clients: there may be as many as there are people. */
export function tenantGauges(uses: readonly TenantFigures[]): readonly Gauge[] {
  return uses.flatMap(({ tenant, nodes, waiting, weight, budget }) => {
    const name = tenant ?? "";
    return [
      gaugeOf("tenant_nodes", nodes, name),
      gaugeOf("tenant_waiting_requests", waiting, name),
      ...(weight === null ? [] : [gaugeOf("tenant_weight", weight, name)]),
      ...(budget === null
        ? []
        : [
            gaugeOf("tenant_budget", budget.amount, name, budget.currency),
            gaugeOf("tenant_spent", budget.spent, name, budget.currency),
          ]),
    ];
  });
}

/** How everything stands: one series each, whose label changes. */
export function standingGauges({ standings }: Pick<View, "standings">): readonly Gauge[] {
  return standings.list().map(({ kind, name, state }) => gaugeOf("standing", 1, kind, name, state));
}

/** Gauges of diskimages, computed on each call, because a tree has few images. */
export function imageGauges({ images }: View): readonly Gauge[] {
  return [...images.names()].flatMap((image) => {
    const builds = [...images.builds(image).values()];
    const building = builds.some(({ state }) => state === "building");
    const uploads = Map.groupBy(images.uploads(image), ({ provider }) => provider);
    return [
      ...imageBuildStates.map((state) => gaugeOf("image_builds", count(builds, state), image, state)),
      gaugeOf("image_build_requested", images.requested(image) && !building ? 1 : 0, image),
      gaugeOf("image_paused", images.get(image)?.paused === true ? 1 : 0, image),
      ...newest(builds).map((at) => gaugeOf("image_last_build_timestamp_seconds", at, image)),
      ...[...uploads].flatMap(([provider, all]) => {
        const records = all.map(({ record }) => record);
        return [
          ...imageUploadStates.map((state) =>
            gaugeOf("image_uploads", count(records, state), image, provider, state),
          ),
          ...newest(records).map((at) => gaugeOf("image_last_upload_timestamp_seconds", at, image, provider)),
        ];
      }),
    ];
  });
}

/** How many of them are in the state. */
function count(records: readonly { readonly state: string }[], wanted: string): number {
  return records.filter(({ state }) => state === wanted).length;
}

/** When the newest of them became ready, seconds since the epoch; empty: none has. */
function newest(records: readonly { readonly state: string; readonly stateTime: number | null }[]) {
  const times = records.flatMap(({ state, stateTime }) => (state === "ready" ? (stateTime ?? []) : []));
  return times.length === 0 ? [] : [Math.max(...times)];
}

/** A build or an upload under way in this process. Members that are null are not known. */
export interface WorkFigures {
  readonly kind: "build" | "upload";
  readonly image: string;
  /** Null for builds. */
  readonly provider: string | null;
  /** Step of an upload, or last line of a build's log. */
  readonly phase: string;
  /** Written by a build, or sent by an upload, so far. */
  readonly bytes: number;
  /** Expected bytes; of a build those of the build before. */
  readonly total: number | null;
  readonly elapsedMs: number;
  readonly bytesPerSecond: number;
  readonly etaMs: number | null;
}

/**
 * How far it is. An image has one build at a time, and one upload to a provider, so the build's id is no label. The phase of a
 * build is a line of its log: as a label it would begin a new series with each line; it is in the API.
 */
export function workGauges(work: readonly WorkFigures[]): readonly Gauge[] {
  return work.flatMap(({ kind, image, provider, phase, bytes, total, elapsedMs, bytesPerSecond, etaMs }) => {
    const labels = [kind, image, provider ?? ""];
    return [
      gaugeOf("work_bytes", bytes, ...labels),
      ...(total === null ? [] : [gaugeOf("work_expected_bytes", total, ...labels)]),
      gaugeOf("work_bytes_per_second", bytesPerSecond, ...labels),
      gaugeOf("work_elapsed_seconds", elapsedMs / 1000, ...labels),
      ...(etaMs === null ? [] : [gaugeOf("work_remaining_seconds", etaMs / 1000, ...labels)]),
      ...(kind === "upload" ? [gaugeOf("work_step", 1, ...labels, phase)] : []),
    ];
  });
}

/** An image of a builder, or an upload of one to a provider. */
interface Paused {
  readonly image: string;
  readonly provider?: string;
  readonly paused: boolean;
}

/** Values of the old state gauges. */
const [IDLE, BUILDING, UPLOADING, PAUSED] = [0, 1, 2, 3] as const;

/**
 * A builder's own figures for statsd: its images and uploads, its current work, and requested builds that have not begun. `requests`:
 * how many builds are requested and have not begun.
 */
export function builderFigures(
  work: readonly Pick<WorkFigures, "kind" | "image" | "provider">[],
  images: readonly Paused[],
  uploads: readonly (Paused & { readonly provider: string })[],
  requests: number,
): readonly Figure[] {
  const [builds, sent] = ["build", "upload"].map((kind) => work.filter((one) => one.kind === kind));
  const builtNow = (image: string) => builds!.some((one) => one.image === image);
  const sentNow = ({ image, provider }: Paused) =>
    sent!.some((one) => one.image === image && one.provider === provider);
  return [
    { name: "build_requests", labels: {}, value: requests },
    ...images.map(({ image, paused }) => ({
      name: "build_state",
      labels: { image },
      value: builtNow(image) ? BUILDING : paused ? PAUSED : IDLE,
    })),
    ...uploads.map((upload) => ({
      name: "upload_state",
      labels: { image: upload.image, provider: upload.provider },
      value: sentNow(upload) ? UPLOADING : upload.paused ? PAUSED : IDLE,
    })),
    { name: "builds", labels: {}, value: builds!.length },
    { name: "uploads", labels: {}, value: sent!.length },
  ];
}
