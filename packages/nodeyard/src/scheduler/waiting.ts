import { SortedQueue } from "./sorted-queue.ts";
import type { PoolState, State, Waiting } from "./state.ts";
import { compareWaiting } from "./state.ts";

/** Where requests wait, and how they leave: the only code that touches more than one of the places at once. */

export function enqueue(state: State, pool: PoolState, waiting: Waiting): void {
  if (pool.queue.add(waiting)) state.dirty.add(pool.policy.key);
}

/** Takes a request out of every place it waits in. */
export function dequeue(state: State, waiting: Waiting): void {
  for (const pool of state.pools.values()) {
    const wasHead = pool.queue.at(0) === waiting;
    if (pool.queue.delete(waiting) && wasHead) state.dirty.add(pool.policy.key);
    pool.yielding.delete(waiting.id);
    if (pool.blocked === waiting.id) {
      pool.blocked = undefined;
      state.dirty.add(pool.policy.key);
    }
    for (const label of new Set(waiting.record.nodeTypes)) {
      const key = `${pool.policy.key} ${label}`;
      const wanting = state.wanting.get(key);
      if (wanting?.delete(waiting) && wanting.size === 0) state.wanting.delete(key);
    }
  }
  const tenant = waiting.record.tenantName;
  if (tenant === null) return;
  const held = state.tenantWaiting.get(tenant);
  if (held?.delete(waiting.id) && held.size === 0) state.tenantWaiting.delete(tenant);
}

/** Moves a request from the queue to the line for idle nodes of one label. */
export function parkForLabel(state: State, pool: PoolState, waiting: Waiting, label: string): void {
  pool.queue.delete(waiting);
  const key = `${pool.policy.key} ${label}`;
  const line = state.wanting.get(key) ?? new SortedQueue<Waiting>(compareWaiting);
  state.wanting.set(key, line);
  line.add(waiting);
}

/** Puts the first in the lines for these labels back into the queue: a node that they want became free. */
export function wakeForLabels(state: State, pool: PoolState, labels: readonly string[]): void {
  for (const label of labels) {
    const key = `${pool.policy.key} ${label}`;
    const line = state.wanting.get(key);
    const first = line?.at(0);
    if (line === undefined || first === undefined) continue;
    line.delete(first);
    if (line.size === 0) state.wanting.delete(key);
    enqueue(state, pool, first);
  }
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

/** Every pool that could serve them looks again at the requests that the tenant's limit held back. */
export function wakeTenant(state: State, tenant: string): void {
  const held = state.tenantWaiting.get(tenant);
  if (held === undefined) return;
  state.tenantWaiting.delete(tenant);
  for (const id of held) state.recheck.add(id);
}
