import { add, exceeded, type Resources } from "@nodeyard/driver";
import { SortedQueue } from "./sorted-queue.ts";
import type { PoolState, State, TenantWaiting, Waiting } from "./state.ts";
import { compareWaiting } from "./state.ts";
import { usedOfTenant } from "./used.ts";

/** Where requests wait, and how they leave: the only code that touches more than one of the places at once. */

export function enqueue(state: State, pool: PoolState, waiting: Waiting): void {
  if (!pool.queue.add(waiting)) return;
  const { key } = pool.policy;
  if (pool.blocked === undefined) state.dirty.add(key);
  else {
    pool.fresh.add(waiting);
    // Behind a blocked head a newcomer changes nothing for those who have been looked at.
    if (pool.queue.at(0) === waiting) state.dirty.add(key);
    else state.newcomers.add(key);
  }
}

/** The head of a pool is no longer held up, or another one is: what was kept for it is anybody's. */
export function unblock(state: State, pool: PoolState): void {
  pool.blocked = undefined;
  state.dirty.add(pool.policy.key);
  dirtyProvider(state, pool.policy.provider);
}

/** Pools of a provider that wait for capacity have something to try again. */
export function dirtyProvider(state: State, provider: string): void {
  for (const { policy, blocked } of state.pools.values())
    if (policy.provider === provider && blocked !== undefined) state.dirty.add(policy.key);
}

/** Takes a request out of every place it waits in. */
export function dequeue(state: State, waiting: Waiting): void {
  for (const pool of state.pools.values()) {
    const wasHead = pool.queue.at(0) === waiting;
    if (pool.queue.delete(waiting) && wasHead) state.dirty.add(pool.policy.key);
    pool.yielding.delete(waiting.id);
    pool.fresh.delete(waiting);
    state.quotaWaiting.get(pool.policy.provider)?.delete(waiting.id);
    if (pool.blocked?.id === waiting.id) unblock(state, pool);
    letHostsGo(state, pool, waiting);
    wakeNext(state, pool, waiting);
    for (const label of new Set(waiting.record.nodeTypes)) {
      const key = `${pool.policy.key} ${label}`;
      const wanting = state.wanting.get(key);
      if (wanting?.delete(waiting) && wanting.size === 0) state.wanting.delete(key);
    }
  }
  const tenant = waiting.record.tenantName;
  if (tenant === null) return;
  const held = state.tenantWaiting.get(tenant);
  if (held?.delete(waiting as TenantWaiting) && held.size === 0) state.tenantWaiting.delete(tenant);
}

/** The request waits for nothing any more: what wakes others seldom, an image or an offering, must not gather those that have gone. */
export function forgetTopics({ imageWaiting, quotaWaiting, offerings }: State, id: string): void {
  for (const topics of [imageWaiting, quotaWaiting, offerings.waiting])
    for (const [topic, ids] of topics) if (ids.delete(id) && ids.size === 0) topics.delete(topic);
}

/** Takes a request out of one pool's queue and inventory: it waits elsewhere. */
export function leaveQueue(state: State, pool: PoolState, waiting: Waiting): void {
  pool.queue.delete(waiting);
  pool.fresh.delete(waiting);
  letHostsGo(state, pool, waiting);
  wakeNext(state, pool, waiting);
}

/**
 * Moves a request from the queue to the line for hosts of the pool, where those that it can use are kept for it. Returns the hosts
 * when they are all there: some may have been kept for requests behind it. While too few hosts are registered, it stands in no
 * line and nothing is kept for it.
 */
export function parkForHosts(state: State, pool: PoolState, waiting: Waiting): readonly string[] | undefined {
  if (!pool.hosts.enoughFor(waiting)) {
    pool.queue.delete(waiting);
    passHostsOn(state, pool, waiting);
    return undefined;
  }
  pool.inventory.join(waiting);
  const hosts = pool.inventory.whole(waiting.id);
  if (hosts === undefined) pool.queue.delete(waiting);
  return hosts;
}

function letHostsGo(state: State, pool: PoolState, waiting: Waiting): void {
  pool.hosts.forget(waiting);
  passHostsOn(state, pool, waiting);
}

function passHostsOn(state: State, pool: PoolState, { id }: Waiting): void {
  for (const next of pool.inventory.leave(id)) onHostKept(state, pool, next);
}

/** A request is planned when its nodeset is whole. Hosts are kept for nobody whom the tenant's limit holds back. */
export function onHostKept(state: State, pool: PoolState, waiting: Waiting): void {
  const { tenantName } = waiting.record;
  const limited = tenantName !== null && state.policy.tenantLimits.has(tenantName);
  if (limited || pool.inventory.whole(waiting.id) !== undefined) enqueue(state, pool, waiting);
}

/** Moves a request from the queue to the line for idle nodes of one label. */
export function parkForLabel(state: State, pool: PoolState, waiting: Waiting, label: string): void {
  leaveQueue(state, pool, waiting);
  const key = `${pool.policy.key} ${label}`;
  const line = state.wanting.get(key) ?? new SortedQueue<Waiting>(compareWaiting);
  state.wanting.set(key, line);
  line.add(waiting);
}

/** Puts the first in the lines for these labels back into the queue: a node that they want became free. */
export function wakeForLabels(
  state: State,
  pool: PoolState,
  labels: readonly string[],
  after?: Waiting,
): void {
  for (const label of labels) {
    const key = `${pool.policy.key} ${label}`;
    const line = state.wanting.get(key);
    const first = after === undefined ? line?.at(0) : line?.after(after);
    if (line === undefined || first === undefined) continue;
    line.delete(first);
    if (line.size === 0) state.wanting.delete(key);
    pool.woken.set(first, labels);
    enqueue(state, pool, first);
  }
}

/** A request that was woken for a node has been looked at: what it does not use may serve the next in line. */
export function wakeNext(state: State, pool: PoolState, waiting: Waiting): void {
  const labels = pool.woken.get(waiting);
  if (labels === undefined) return;
  pool.woken.delete(waiting);
  const idle = labels.filter((label) => state.idle.of(pool.policy.key, label).size > 0);
  wakeForLabels(state, pool, idle, waiting);
}

/** Puts everyone who waits for a label in this pool back into the queue (the pool goes). */
export function wakeAllForPool(state: State, pool: PoolState): void {
  const prefix = `${pool.policy.key} `;
  for (const [key, line] of [...state.wanting]) {
    if (!key.startsWith(prefix)) continue;
    state.wanting.delete(key);
    for (const waiting of line) enqueue(state, pool, waiting);
  }
}

/** The request wants more than others leave of the provider's quota, and waits until they leave more. */
export function parkForQuota(state: State, { policy }: PoolState, { id }: Waiting): void {
  const ids = state.quotaWaiting.get(policy.provider) ?? new Set();
  state.quotaWaiting.set(policy.provider, ids.add(id));
}

/** Puts a request in its tenant's line. */
export function parkForTenant(state: State, waiting: Waiting, need: Resources): void {
  const tenant = waiting.record.tenantName;
  if (tenant === null) return;
  const held = state.tenantWaiting.get(tenant) ?? new SortedQueue<TenantWaiting>(compareWaiting);
  state.tenantWaiting.set(tenant, held);
  held.add({ ...waiting, need });
}

/** The first of those whom the tenant's limit holds back are looked at again: as many as there is room for now. */
export function wakeTenant(state: State, tenant: string): void {
  const held = state.tenantWaiting.get(tenant);
  if (held === undefined) return;
  const limit = state.policy.tenantLimits.get(tenant) ?? {};
  let used = usedOfTenant(state, tenant);
  for (let first = held.at(0); first !== undefined; first = held.at(0)) {
    if (exceeded(limit, used, first.need) !== undefined) return;
    used = add(used, first.need);
    held.delete(first);
    state.recheck.add(first.id);
  }
  state.tenantWaiting.delete(tenant);
}
