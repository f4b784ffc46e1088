import { type NodeEntry, poolKey } from "@nodeyard/view";
import { HOST_BACK_MS } from "./hosts.ts";
import type { PoolState } from "./pool-state.ts";
import type { State, Turn } from "./state.ts";
import { enqueue, onHostKept, rightfulKeeper } from "./waiting.ts";

/** A host is idle: it is kept for the first who can use it. */
export function offerHost(state: State, pool: PoolState, id: string): void {
  const first = pool.inventory.add(id, state.nodes.get(id)?.record.type ?? []);
  if (first !== undefined) onHostKept(state, pool, rightfulKeeper(state, pool, first));
}

/** Notes that a host exists, whatever its state. */
export function hostThere(state: State, { id, record }: NodeEntry, key: string): void {
  const pool = state.pools.get(key);
  if (pool === undefined || pool.policy.launches) return;
  for (const waiting of pool.hosts.set(id, record)) enqueue(state, pool, waiting);
}

/** The record of a host was deleted. The host usually registers again with a new record, so it counts until its timer expires. */
export function hostLeft(state: State, turn: Turn, { id, record }: NodeEntry): void {
  const pool = poolKey(record.provider, record.pool);
  const host = state.pools.get(pool)?.hosts.remove(id);
  if (host !== undefined) state.timers.set("host", JSON.stringify([pool, host]), turn.steady + HOST_BACK_MS);
}

/** The host has not come back in time. `key` is the name of its timer. */
export function onHostDue(state: State, key: string): void {
  const [name, host] = JSON.parse(key) as [string, string];
  const pool = state.pools.get(name);
  for (const waiting of pool?.hosts.lapse(host) ?? []) enqueue(state, pool!, waiting);
}

/**
 * A tenant with a limit has more nodes than before. Its other requests may be over the limit now: they are planned again, which gives
 * their hosts to other tenants.
 */
export function onTenantTook(state: State, tenant: string): void {
  if (!state.policy.tenantLimits.has(tenant)) return;
  for (const pool of state.pools.values())
    for (const waiting of pool.inventory.keepers())
      if (waiting.record.tenantName === tenant) enqueue(state, pool, waiting);
}
