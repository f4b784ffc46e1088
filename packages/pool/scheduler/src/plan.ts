import { add, exceeded, type Resources } from "@nodeyard/driver";
import { MIN_READY, partOf } from "@nodeyard/model";
import { type OverBudget, overBudget } from "./budgets.ts";
import { type NoRoom, type OverTenant, overTenant, roomFor } from "./capacity.ts";
import { missingImage } from "./images.ts";
import { counted, total } from "./needs.ts";
import { chooseNodes, inOneZone, leastOpen, readyOf } from "./nodeset.ts";
import {
  type ClosedEverywhere,
  type ClosedOffering,
  closedAmong,
  closedFor,
  maySoon,
  zonesOf,
} from "./offerings.ts";
import { zonesFor } from "./pairing.ts";
import type { PoolState } from "./pool-state.ts";
import { isInert } from "./requests.ts";
import type { State } from "./state.ts";
import type { LocalPool, PlannedNode, RegisteredPool, VerdictCode } from "./types.ts";
import { wholeQuotaOf } from "./used.ts";
import type { Waiting } from "./waits.ts";

/** What a pool can do for a request at this moment. */
export type Plan =
  | { readonly kind: "serve"; readonly nodes: readonly PlannedNode[]; readonly zone: string | null }
  | { readonly kind: "decline"; readonly reason: string }
  /** Another pool goes first, until the registry changes. */
  | { readonly kind: "yield"; readonly code: VerdictCode; readonly facts: Facts }
  /** Hosts are missing; they become free only when other requests return them. */
  | { readonly kind: "want" }
  /** The image of a label is not uploaded yet. */
  | { readonly kind: "image"; readonly label: string; readonly image: string; readonly facts: Facts }
  /** Launches of a label fail at the moment. */
  | { readonly kind: "closed"; readonly closed: ClosedEverywhere }
  | OverTenant
  | OverBudget
  | NoRoom;

type Facts = Readonly<Record<string, unknown>>;

/**
 * Milliseconds after which a pool no longer yields a request: the pool that goes first may never serve it (docs/contract/launcher.md,
 * "Which pool takes a request").
 */
export const YIELD_MS = 60_000;

/**
 * Gates in the order of docs/contract/launcher.md, "Which pool takes a request", then the nodes themselves. Changes nothing. Whether
 * it is the request's turn is the part of `allocate`, so `explain` can plan any request.
 */
export function planFor(state: State, steady: number, pool: PoolState, waiting: Waiting): Plan {
  const { policy } = pool;
  return (
    yieldTo(state, steady, policy, waiting) ??
    reasonToDecline(state, policy, waiting) ??
    overBudget(state, waiting) ??
    overTenant(state, policy, waiting) ??
    planNodes(state, steady, pool, waiting)
  );
}

/** Whether another registered pool goes first: the one of the wanted provider, or one of higher priority that can serve soon. */
function yieldTo(state: State, steady: number, pool: LocalPool, waiting: Waiting): Plan | undefined {
  const { record } = waiting;
  const since = state.requests.of(waiting.id)?.yieldedAt;
  // It has yielded for as long as it may, and from now on does not yield again until it is served.
  if (since !== undefined && steady >= since + YIELD_MS) return undefined;
  const candidates = state.registry.candidates(record.nodeTypes, record.declinedBy);
  const { provider } = record;
  if (provider !== null && provider !== pool.provider) {
    const preferred = candidates.find((other) => other.provider === provider);
    if (preferred !== undefined) {
      return { kind: "yield", code: "yield.provider", facts: { provider, pool: preferred.id } };
    }
  }
  const better = candidates.find(
    (other) =>
      other.priority < pool.priority &&
      !other.paused &&
      other.id !== pool.id &&
      isLooking(state, other, waiting) &&
      maySoon(state, steady, other, waiting),
  );
  if (better !== undefined) {
    return { kind: "yield", code: "yield.priority", facts: { pool: better.id, priority: better.priority } };
  }
  return undefined;
}

/**
 * Whether a pool considers the request now. A pool of this launcher that serves nothing, or makes the request wait for something, does
 * not. Of the pools of other launchers only `paused` is known.
 */
function isLooking(state: State, other: RegisteredPool, waiting: Waiting): boolean {
  for (const pool of state.pools.values()) {
    if (pool.policy.id !== other.id) continue;
    if (isInert(state, pool.policy.provider)) return false;
    return pool.queue.has(waiting) || state.waits.has("yield", pool.policy.key, waiting);
  }
  return true;
}

/** The first that applies of docs/contract/launcher.md, "Reasons to decline". */
function reasonToDecline(state: State, pool: LocalPool, { record }: Waiting): Plan | undefined {
  if ((pool.limits.instances ?? Number.POSITIVE_INFINITY) <= 0) {
    return { kind: "decline", reason: "pool is disabled by max_servers" };
  }
  for (const label of record.nodeTypes) {
    const why = pool.unavailable.get(label);
    if (why !== undefined) return { kind: "decline", reason: why };
  }
  if (zonesFor(partOf(record)?.places, pool) === undefined)
    return { kind: "decline", reason: "its nodes cannot agree with the rest of the set" };
  // The old launcher keeps it waiting for what can never be (docs/design/scheduler.md).
  const tenant = record.tenantName === null ? {} : (state.policy.tenantLimits.get(record.tenantName) ?? {});
  const tooMany = beyond("the tenant's limit", tenant, total(pool, record.nodeTypes));
  if (tooMany !== undefined) return tooMany;
  if (pool.launches) {
    const all = total(pool, record.nodeTypes);
    return (
      beyond("the pool's limit", pool.limits, all) ??
      beyond("the provider's quota", wholeQuotaOf(state, pool), all)
    );
  }
  if (record.requestor === MIN_READY) return { kind: "decline", reason: "the pool launches no nodes" };
  for (const [label, count] of counted(record.nodeTypes)) {
    const have = pool.inventory.get(label) ?? 0;
    if (count > have)
      return {
        kind: "decline",
        reason: `it would exceed quota (${label}: ${count}, and the pool has ${have})`,
      };
  }
  return undefined;
}

/** Declines what would not fit even if nothing else were there; undefined: it would. */
function beyond(whose: string, limits: Resources, all: Resources): Plan | undefined {
  const over = exceeded(limits, {}, all);
  if (over === undefined) return undefined;
  return {
    kind: "decline",
    reason: `it would exceed quota (${over}: ${all[over]}, and ${whose} is ${limits[over]})`,
  };
}

/** The nodes themselves: ready ones, and launches where the image is there, the offering open and room enough. */
function planNodes(state: State, steady: number, pool: PoolState, waiting: Waiting): Plan {
  const policy = inPlaces(pool.policy, waiting);
  if (!policy.launches) return planHosts(pool, waiting);
  const set = chooseNodes(state, policy, waiting);
  const { nodes, launching } = set;
  if (launching.length === 0) return { kind: "serve", nodes, zone: set.zone };
  const image = missingImage(state, policy, launching);
  if (image !== undefined) return withoutImage(waiting, image);
  if (policy.offerings !== undefined && state.gates.closed.size === 0) {
    // What no offering has room for: then it does not matter which of them is the best, and most requests of a full pool are such.
    const least = roomFor(state, steady, policy, waiting, set);
    if (least !== undefined) return least;
  }
  if (zonesOf(policy, launching).length === 0)
    return { kind: "decline", reason: `no zone sells all of ${[...new Set(launching)].join(", ")}` };
  const placed = inOneZone(state, steady, policy, waiting, set);
  if (placed === undefined) {
    // Without its ready nodes, where those are in a zone that is closed: then it launches all of its nodes.
    const labels = set.zone === null ? launching : waiting.record.nodeTypes;
    const closed =
      closedFor(state, steady, policy, labels, waiting.id) ??
      closedAmong(state, steady, policy, labels, waiting);
    if (closed !== undefined) return declineClosed(waiting, closed) ?? { kind: "closed", closed };
    return { kind: "decline", reason: "it would exceed quota with every offering" };
  }
  const room = roomFor(state, steady, policy, waiting, placed);
  if (room !== undefined) return room;
  // After the other limits, because without room for any offering the best one may be large.
  const all = add(placed.need, readyOf(policy, placed));
  const over = policy.offerings && overTenant(state, policy, waiting, all);
  if (over !== undefined) return { ...over, need: leastOpen(state, steady, policy, waiting, placed) };
  return { kind: "serve", nodes: placed.nodes, zone: placed.zone };
}

/** Of each pool as it is configured: by zones. What is known of a pool is kept by the object. */
const confined = new WeakMap<LocalPool, Map<string, LocalPool>>();

/** The pool as a request may use it: in a mixed set its zones may be limited to those of the other parts. */
function inPlaces(pool: LocalPool, { record }: Waiting): LocalPool {
  const zones = zonesFor(partOf(record)?.places, pool);
  if (zones == null) return pool;
  const ofPool = confined.get(pool) ?? new Map<string, LocalPool>();
  confined.set(pool, ofPool);
  const key = zones.join();
  const found = ofPool.get(key) ?? { ...pool, zones };
  ofPool.set(key, found);
  return found;
}

/** Hosts that are kept for the request. A request that is not in line yet gets free hosts, which no earlier request can use. */
function planHosts({ inventory }: PoolState, { id, record }: Waiting): Plan {
  const hosts = inventory.has(id) ? inventory.whole(id) : inventory.freeFor(record.nodeTypes);
  return hosts === undefined
    ? { kind: "want" }
    : { kind: "serve", nodes: reuseAll(record, hosts), zone: null };
}

export function reuseAll(
  { nodeTypes }: { readonly nodeTypes: readonly string[] },
  hosts: readonly string[],
): readonly PlannedNode[] {
  return hosts.map((reuse, index) => ({ label: nodeTypes[index]!, reuse }));
}

/** A request waits for its image; min-ready is declined, because it must not hold anything up. */
function withoutImage({ record }: Waiting, missing: NonNullable<ReturnType<typeof missingImage>>): Plan {
  if (missing.kind === "never") return { kind: "decline", reason: missing.reason };
  const { label, image, facts } = missing;
  if (record.requestor === MIN_READY) return { kind: "decline", reason: `image ${image} is not there yet` };
  return { kind: "image", label, image, facts };
}

/** Declines a request that has no use of waiting for closed offerings: they have failed too often, or it is a min-ready request. */
function declineClosed({ record }: Waiting, { decline, code, label }: ClosedOffering): Plan | undefined {
  if (decline !== undefined) return { kind: "decline", reason: decline };
  return record.requestor === MIN_READY ? { kind: "decline", reason: `${label}: ${code}` } : undefined;
}
