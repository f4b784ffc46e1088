import { type NodeEntry, poolKey } from "../view/index.ts";
import type { PoolState, State, Turn } from "./state.ts";
import { enqueue, onHostKept } from "./waiting.ts";

/** A host that is registered anew after a use is back within seconds; one that is not by then waits for a repair, milliseconds. */
export const HOST_BACK_MS = 300_000;

/** A host is idle: it is kept for the first who can use it. */
export function offerHost(state: State, pool: PoolState, id: string): void {
  const first = pool.inventory.add(id, state.nodes.get(id)?.record.type ?? []);
  if (first !== undefined) onHostKept(state, pool, first);
}

/** Notes that a host exists, whatever its state. */
export function hostThere(state: State, { id, record }: NodeEntry, key: string): void {
  const pool = state.pools.get(key);
  if (pool === undefined || pool.policy.launches) return;
  for (const waiting of pool.hosts.set(id, record)) enqueue(state, pool, waiting);
}

/** A record went; its host mostly comes back under another one. */
export function hostLeft(state: State, turn: Turn, { id, record }: NodeEntry): void {
  const pool = poolKey(record.provider, record.pool);
  const host = state.pools.get(pool)?.hosts.remove(id);
  if (host !== undefined) state.timers.set("host", JSON.stringify([pool, host]), turn.steady + HOST_BACK_MS);
}

/** The time for a host to come back is over. `key` is the name of its timer. */
export function onHostDue(state: State, key: string): void {
  const [name, host] = JSON.parse(key) as [string, string];
  const pool = state.pools.get(name);
  for (const waiting of pool?.hosts.lapse(host) ?? []) enqueue(state, pool!, waiting);
}

/** A tenant with a limit has more nodes than before: hosts that are kept for its other requests may be of use to others only. */
export function onTenantTook(state: State, tenant: string): void {
  if (!state.policy.tenantLimits.has(tenant)) return;
  for (const pool of state.pools.values())
    for (const waiting of pool.inventory.keepers())
      if (waiting.record.tenantName === tenant) enqueue(state, pool, waiting);
}
