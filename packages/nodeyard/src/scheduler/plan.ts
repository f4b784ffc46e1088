import { add, exceeded, type Resources } from "@nodeyard/driver";
import { type Closed, closedFor, maySoon } from "./offerings.ts";
import { isInert, MIN_READY } from "./requests.ts";
import type { PoolState, State, Waiting } from "./state.ts";
import type { LocalPool, PlannedNode, VerdictCode } from "./types.ts";

/** What a pool can do for a request at this moment. */
export type Plan =
  | { readonly kind: "serve"; readonly nodes: readonly PlannedNode[] }
  | { readonly kind: "decline"; readonly reason: string }
  /** Another pool goes first, until the registry changes. */
  | { readonly kind: "yield"; readonly code: VerdictCode; readonly facts: Facts }
  /** No idle node of this label; only a freed one helps. */
  | { readonly kind: "want"; readonly label: string }
  | { readonly kind: "tenant"; readonly facts: Facts }
  /** Launches of a label fail at the moment. */
  | { readonly kind: "closed"; readonly closed: Closed }
  /** Capacity is short: the pool works for this request before others. `short`: instances missing in the pool. */
  | { readonly kind: "blocked"; readonly code: VerdictCode; readonly facts: Facts; readonly short: number };

type Facts = Readonly<Record<string, unknown>>;

export const oneInstance: Resources = { instances: 1 };

export function needOf(pool: LocalPool, label: string): Resources {
  return pool.needs.get(label) ?? oneInstance;
}

/** Gates in the order of spec zookeeper.md 5.2, then the nodes themselves. */
export function planFor(state: State, pool: PoolState, waiting: Waiting): Plan {
  const { policy } = pool;
  return (
    yieldTo(state, policy, waiting) ??
    reasonToDecline(state, policy, waiting) ??
    overTenant(state, policy, waiting) ??
    chooseNodes(state, pool, waiting)
  );
}

function yieldTo(state: State, pool: LocalPool, waiting: Waiting): Plan | undefined {
  const { record } = waiting;
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
      other.priority < pool.priority && !other.paused && other.id !== pool.id && maySoon(state, other, waiting),
  );
  if (better !== undefined) {
    return { kind: "yield", code: "yield.priority", facts: { pool: better.id, priority: better.priority } };
  }
  return undefined;
}

/** Spec launcher.md 2.3; first match. */
function reasonToDecline(state: State, pool: LocalPool, { record }: Waiting): Plan | undefined {
  if ((pool.limits.instances ?? Number.POSITIVE_INFINITY) <= 0) {
    return { kind: "decline", reason: "pool is disabled by max_servers" };
  }
  for (const label of record.nodeTypes) {
    const why = pool.unavailable.get(label);
    if (why !== undefined) return { kind: "decline", reason: why };
  }
  if (pool.launches) {
    const provider = state.policy.providers.get(pool.provider);
    const quota = provider?.limits ?? provider?.quota ?? {};
    const all = total(pool, record.nodeTypes);
    const over = exceeded(pool.limits, {}, all) ?? exceeded(quota, {}, all);
    if (over !== undefined)
      return { kind: "decline", reason: `it would exceed quota (${over}: ${all[over]})` };
    return undefined;
  }
  if (record.requestor === MIN_READY) return { kind: "decline", reason: "the pool launches no nodes" };
  for (const [label, count] of counts(record.nodeTypes)) {
    const have = pool.inventory.get(label) ?? 0;
    if (count > have)
      return { kind: "decline", reason: `it would exceed quota (${label}: ${count} of ${have})` };
  }
  return undefined;
}

function overTenant(state: State, pool: LocalPool, { record }: Waiting): Plan | undefined {
  const tenant = record.tenantName;
  const limit = tenant === null ? undefined : state.policy.tenantLimits.get(tenant);
  if (tenant === null || limit === undefined) return undefined;
  const used = state.usage.of(`tenant ${tenant}`);
  const over = exceeded(limit, used, total(pool, record.nodeTypes));
  if (over === undefined) return undefined;
  return { kind: "tenant", facts: { tenant, resource: over, limit: limit[over], used: used[over] ?? 0 } };
}

function chooseNodes(state: State, pool: PoolState, waiting: Waiting): Plan {
  const { record } = waiting;
  const { policy } = pool;
  const taken = new Set<string>();
  const nodes: PlannedNode[] = [];
  let launching: Resources = {};
  let launches = 0;
  // Hosts that exist on their own are registered anew after each use: there a free one is never a used one.
  const mayTake = record.reuse || !policy.launches;
  for (const label of record.nodeTypes) {
    const idle = mayTake ? state.idle.of(policy.key, label).find((id) => !taken.has(id)) : undefined;
    if (idle !== undefined) {
      taken.add(idle);
      nodes.push({ label, reuse: idle });
    } else if (!policy.launches) return { kind: "want", label };
    else {
      const need = needOf(policy, label);
      launching = add(launching, need);
      launches++;
      nodes.push({ label, launch: need });
    }
  }
  if (launches === 0) return { kind: "serve", nodes };
  const launched = nodes.flatMap((node) => ("launch" in node ? [node.label] : []));
  const closed = closedFor(state, policy, launched, waiting.id);
  if (closed !== undefined) return declineClosed(waiting, closed) ?? { kind: "closed", closed };
  return roomFor(state, policy, waiting, launching, launches) ?? { kind: "serve", nodes };
}

/** Stock is not waited for, nor is what does not come back. */
function declineClosed({ record }: Waiting, { decline, code, label }: Closed): Plan | undefined {
  if (decline !== undefined) return { kind: "decline", reason: decline };
  return record.requestor === MIN_READY ? { kind: "decline", reason: `${label}: ${code}` } : undefined;
}

function roomFor(
  state: State,
  pool: LocalPool,
  { record }: Waiting,
  need: Resources,
  launches: number,
): Plan | undefined {
  const provider = state.policy.providers.get(pool.provider);
  const inPool = state.usage.of(`pool ${pool.key}`);
  const inProvider = state.usage.of(`provider ${pool.provider}`);
  const checks = [
    ["capacity.pool", pool.limits, inPool],
    ["capacity.provider", provider?.quota ?? {}, inProvider],
    [
      "capacity.concurrency",
      { instances: provider?.maxConcurrency ?? Number.POSITIVE_INFINITY },
      state.usage.of(`launching ${pool.provider}`),
    ],
  ] as const;
  for (const [code, limits, used] of checks) {
    const limit: Resources = limits;
    const asked =
      code === "capacity.concurrency" ? { instances: Math.min(launches, limit.instances ?? launches) } : need;
    const over = exceeded(limit, used, asked);
    if (over === undefined) continue;
    if (record.requestor === MIN_READY) return { kind: "decline", reason: `at capacity (${code}: ${over})` };
    const facts = {
      pool: pool.key,
      resource: over,
      limit: limit[over],
      used: used[over] ?? 0,
      need: asked[over],
    };
    const missing = (used.instances ?? 0) + launches - (limit.instances ?? Number.POSITIVE_INFINITY);
    return {
      kind: "blocked",
      code,
      facts,
      short: code === "capacity.concurrency" ? 0 : Math.max(missing, 1),
    };
  }
  return undefined;
}

function total(pool: LocalPool, labels: readonly string[]): Resources {
  return labels.reduce<Resources>((sum, label) => add(sum, needOf(pool, label)), {});
}

function counts(labels: readonly string[]): Map<string, number> {
  const byLabel = new Map<string, number>();
  for (const label of labels) byLabel.set(label, (byLabel.get(label) ?? 0) + 1);
  return byLabel;
}

/** Whether this pool looks at requests at all. */
export function looksAtRequests(state: State, pool: PoolState): boolean {
  return !isInert(state, pool.policy.provider);
}
