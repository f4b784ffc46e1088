import type { Resources } from "@nodeyard/driver";
import { offerHost } from "./host-line.ts";
import { Hosts } from "./hosts.ts";
import { Inventory } from "./inventory.ts";
import { reconsider } from "./nodes.ts";
import { PoolQueue } from "./pool-queue.ts";
import { quotaFreed } from "./refusals.ts";
import { compareWaiting, type PoolState, type State, type Turn, type Waiting } from "./state.ts";
import type { Policy } from "./types.ts";
import { recountUnreadable } from "./unreadable.ts";
import { dequeue, dirtyProvider, wakeAllForPool } from "./waiting.ts";

/** Takes a new configuration or new facts of a provider. Queues are rebuilt only when the set of pools or labels moved. */
export function onPolicy(state: State, turn: Turn, policy: Policy): void {
  const before = state.policy;
  state.policy = policy;
  const keys = new Set(policy.pools.map((pool) => pool.key));
  for (const [key, pool] of state.pools) {
    if (keys.has(key)) continue;
    wakeAllForPool(state, pool);
    for (const waiting of [...pool.queue]) dequeue(state, waiting);
    state.pools.delete(key);
    // Nobody would ever look at it again: a turn with dirty pools asks for another one.
    state.dirty.delete(key);
    state.newcomers.delete(key);
    dirtyProvider(state, pool.policy.provider);
    state.startBlocked.delete(key);
  }
  for (const pool of policy.pools) {
    const known = state.pools.get(pool.key);
    if (known === undefined) {
      state.pools.set(pool.key, {
        policy: pool,
        queue: new PoolQueue<Waiting>(compareWaiting),
        fresh: new Set(),
        woken: new Map(),
        yielding: new Map(),
        blocked: undefined,
        paused: false,
        inventory: new Inventory<Waiting>(compareWaiting),
        hosts: new Hosts<Waiting>(),
      });
    } else {
      // A new component says that it is not paused.
      if (known.policy.id !== pool.id) known.paused = false;
      known.policy = pool;
    }
    state.dirty.add(pool.key);
  }
  for (const [name, { quota }] of policy.providers)
    if (givesMore(before.providers.get(name)?.quota ?? {}, quota)) quotaFreed(state, name);
  for (const id of state.requests.keys()) if (!state.handling.has(id)) state.recheck.add(id);
  for (const label of new Set([...before.labels.keys(), ...policy.labels.keys()]))
    state.dirtyLabels.add(label);
  for (const id of state.nodes.keys()) reconsider(state, turn, id);
  recountUnreadable(state);
  for (const pool of state.pools.values()) if (!pool.policy.launches) offerIdle(state, pool);
}

/** Hosts may have been idle before their pool was known. */
function offerIdle(state: State, pool: PoolState): void {
  for (const id of state.idle.ofPool(pool.policy.key)) offerHost(state, pool, id);
}

/** Whether a quota has more of anything than it had. */
function givesMore(before: Resources, after: Resources): boolean {
  return Object.keys(before).some((name) => (after[name] ?? Number.POSITIVE_INFINITY) > before[name]!);
}
