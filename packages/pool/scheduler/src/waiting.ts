import { add, exceeded, type Resources } from "@nodeyard/driver";
import type { PoolState } from "./pool-state.ts";
import { rankKey, ShareQueue } from "./share-queue.ts";
import { freeNodes, type State } from "./state.ts";
import { usedOfTenant } from "./used.ts";
import { labelLine, type Topic, type Waiting } from "./waits.ts";

/** How requests come into the queues and lines, and how they leave: the only code that touches more than one of these at once. */

/** Adds a request to the queue of a pool and puts the pool on the list of work. */
export function enqueue(state: State, pool: PoolState, waiting: Waiting): void {
  if (!pool.queue.add(waiting)) return;
  const { key } = pool.policy;
  if (pool.blocked === undefined) state.todo.pools.add(key);
  else {
    pool.fresh.add(waiting);
    // Behind a blocked head, a new request changes nothing for those that were planned before, so only the new ones are planned.
    if (pool.queue.first === waiting) state.todo.pools.add(key);
    else state.todo.newcomers.add(key);
  }
}

/** The head of a pool is no longer blocked, or is another request: the capacity that was reserved for it is free for all pools. */
function unblock(state: State, pool: PoolState): void {
  pool.blocked = undefined;
  state.todo.pools.add(pool.policy.key);
  dirtyProvider(state, pool.policy.provider);
  wakeHeldUp(state, pool);
}

/** Lets min-ready try again for the labels of a pool that may have room now. */
export function wakeHeldUp(state: State, { policy }: PoolState): void {
  for (const label of state.minReady.heldUp) if (policy.labels.has(label)) state.todo.labels.add(label);
}

/** Puts the pools of a provider whose head waits for capacity on the list of work. */
export function dirtyProvider(state: State, provider: string): void {
  for (const { policy, blocked } of state.pools.values())
    if (policy.provider === provider && blocked !== undefined) state.todo.pools.add(policy.key);
}

/** Ends the pause of a request that was put back, and the reservation that was made for it. */
export function leavePlace(state: State, id: string): void {
  state.timers.delete("request", id);
  const place = state.requests.putBack.get(id);
  if (place === undefined) return;
  state.requests.putBack.delete(id);
  dirtyProvider(state, place.policy.provider);
}

/** Forgets since when a request has waited for another pool. */
export function forgetYield(state: State, id: string): void {
  const known = state.requests.of(id);
  if (known !== undefined) known.yieldedAt = undefined;
  state.timers.delete("yield", id);
}

/** A planned launch counts no longer. Returns the keys of the sums in which it did. */
export function unreserve(state: State, launch: string): readonly string[] {
  state.shares.set(launch, undefined);
  return state.usage.delete(launch) ?? [];
}

/** Removes a request from all queues and lines. Returns it as it stood there; undefined when it did not wait. */
export function stopWaiting(state: State, id: string): Waiting | undefined {
  const known = state.requests.of(id);
  const waiting = known?.waiting;
  if (known === undefined || waiting === undefined) return undefined;
  known.waiting = undefined;
  known.headSince = undefined;
  state.waits.leaveAll(waiting);
  for (const pool of state.pools.values()) {
    // The next request becomes the head.
    if (pool.queue.first === waiting) state.todo.pools.add(pool.policy.key);
    leaveQueue(state, pool, waiting);
    if (pool.blocked?.id === id) unblock(state, pool);
  }
  return waiting;
}

/** With shares: requests of one priority that want the same hosts, however many of them. */
export function hostTurn(waiting: Waiting): string {
  return JSON.stringify([rankKey(waiting), ...[...new Set(waiting.record.nodeTypes)].sort()]);
}

/** Whether a request is first in a pool, or the first of those that want the same hosts. */
export function isNext(pool: PoolState, waiting: Waiting): boolean {
  return (pool.turns.get(hostTurn(waiting))?.next ?? pool.queue.first)?.id === waiting.id;
}

/** Whether it is a request's turn to have hosts kept for it. Otherwise it waits until it is. */
function isHostTurn(state: State, pool: PoolState, waiting: Waiting): boolean {
  if (!state.shares.on) return true;
  const key = hostTurn(waiting);
  const turn = pool.turns.get(key) ?? { next: waiting, others: new ShareQueue(state.shares) };
  pool.turns.set(key, turn);
  if (turn.next.id === waiting.id) return true;
  turn.others.add(waiting);
  return false;
}

/** It waits for no hosts of this pool any more: the next one has them kept. */
function leaveHostTurn(state: State, pool: PoolState, waiting: Waiting): void {
  if (pool.turns.size === 0) return;
  const key = hostTurn(waiting);
  const turn = pool.turns.get(key);
  turn?.others.delete(waiting);
  if (turn?.next.id !== waiting.id) return;
  const next = turn.others.first;
  if (next === undefined) return void pool.turns.delete(key);
  turn.next = next;
  turn.others.delete(next);
  enqueue(state, pool, next);
}

/** A host became idle and was kept for a request. If that had none before, whose turn it is by now gets the host. */
export function rightfulKeeper(state: State, pool: PoolState, keeper: Waiting): Waiting {
  const turn = pool.turns.get(hostTurn(keeper));
  if (turn?.next.id !== keeper.id || pool.inventory.keptFor(keeper.id).length > 1) return keeper;
  const { others } = turn;
  others.add(keeper);
  const next = others.first!;
  others.delete(next);
  if (next.id === keeper.id) return keeper;
  turn.next = next;
  pool.queue.delete(keeper);
  pool.inventory.join(next);
  passHostsOn(state, pool, keeper);
  return next;
}

/** Removes a request from the queue and the inventory of one pool. Its hosts and woken labels pass to the next request. */
export function leaveQueue(state: State, pool: PoolState, waiting: Waiting): void {
  pool.queue.delete(waiting);
  pool.fresh.delete(waiting);
  pool.hosts.forget(waiting);
  passHostsOn(state, pool, waiting);
  leaveHostTurn(state, pool, waiting);
  wakeNext(state, pool, waiting);
}

/** Takes all requests out of this line and classifies them again. */
export function recheckAll(state: State, topic: Topic, name: string): void {
  for (const waiter of [...state.waits.line(topic, name)]) recheck(state, topic, name, waiter);
}

/** The same for the first request in the line only: it tries, and the others wait for its result. */
export function recheckFirst(state: State, topic: Topic, name: string): void {
  const first = state.waits.line(topic, name).at(0);
  if (first !== undefined) recheck(state, topic, name, first);
}

/** Classified anew, a request may find another pool than the one it waited in. */
function recheck(state: State, topic: Topic, name: string, waiter: Waiting): void {
  state.waits.leave(topic, name, waiter);
  state.todo.requests.add(waiter.id);
}

/** The launches of a request have begun, or it has ended: pools whose head waited to start go on. */
export function wakeStarts(state: State): void {
  for (const pool of state.waits.names("start")) {
    state.todo.pools.add(pool);
    for (const waiter of [...state.waits.line("start", pool)]) state.waits.leave("start", pool, waiter);
  }
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
    leaveHostTurn(state, pool, waiting);
    return undefined;
  }
  if (!isHostTurn(state, pool, waiting)) {
    pool.queue.delete(waiting);
    return undefined;
  }
  pool.inventory.join(waiting);
  const hosts = pool.inventory.whole(waiting.id);
  if (hosts === undefined) pool.queue.delete(waiting);
  return hosts;
}

/** Gives the hosts that were kept for a request to the next requests that can use them. */
function passHostsOn(state: State, pool: PoolState, { id }: Waiting): void {
  for (const next of pool.inventory.leave(id)) onHostKept(state, pool, next);
}

/** Plans a request when all of its hosts are idle. A request that waits for its tenant's limit keeps no hosts from the others. */
export function onHostKept(state: State, pool: PoolState, waiting: Waiting): void {
  const { tenantName } = waiting.record;
  const limited = tenantName !== null && state.policy.tenantLimits.has(tenantName);
  if (limited || pool.inventory.whole(waiting.id) !== undefined) enqueue(state, pool, waiting);
}

/** Moves a request from the queue to the line for idle nodes of one label. */
export function parkForLabel(state: State, pool: PoolState, waiting: Waiting, label: string): void {
  leaveQueue(state, pool, waiting);
  state.waits.join("label", labelLine(pool.policy.key, label), waiting);
}

/**
 * A node of these labels became idle: puts the first request in the line of each label back into the queue, or the first one after
 * `after`. Only the first, because one node serves one request.
 */
export function wakeForLabels(
  state: State,
  pool: PoolState,
  labels: readonly string[],
  after?: Waiting,
): void {
  for (const label of labels) {
    const name = labelLine(pool.policy.key, label);
    const line = state.waits.line("label", name);
    const first = after === undefined ? line.at(0) : line.after(after);
    if (first === undefined) continue;
    state.waits.leave("label", name, first);
    pool.woken.set(first, labels);
    enqueue(state, pool, first);
  }
}

/** Wakes the next request in line for the idle nodes that woke this one and that it has not used. */
export function wakeNext(state: State, pool: PoolState, waiting: Waiting): void {
  const labels = pool.woken.get(waiting);
  if (labels === undefined) return;
  pool.woken.delete(waiting);
  const idle = labels.filter((label) =>
    freeNodes(state).some((index) => index.of(pool.policy.key, label).size > 0),
  );
  wakeForLabels(state, pool, idle, waiting);
}

/** Puts a request in its tenant's line. */
export function parkForTenant(state: State, waiting: Waiting, need: Resources): void {
  const tenant = waiting.record.tenantName;
  if (tenant !== null) state.waits.join("tenant", tenant, { ...waiting, need });
}

/** Plans the first requests that wait for the limit of a tenant again: as many as fit into the limit now. */
export function wakeTenant(state: State, tenant: string): void {
  const line = state.waits.line("tenant", tenant);
  if (line.size === 0) return;
  // Those that are woken are counted as if they had been served, so that no more are planned than fit.
  const limit = state.policy.tenantLimits.get(tenant) ?? {};
  let used = usedOfTenant(state, tenant);
  for (let first = line.at(0); first !== undefined; first = line.at(0)) {
    const need = first.need ?? {};
    if (exceeded(limit, used, need) !== undefined) return;
    used = add(used, need);
    recheck(state, "tenant", tenant, first);
  }
}

/** Less is used of these sums: wakes the pools, the tenants and the labels that may have waited for it. */
export function wakeFreed(state: State, keys: readonly string[]): void {
  for (const key of keys) {
    const space = key.indexOf(" ");
    const [kind, name] = [key.slice(0, space), key.slice(space + 1)];
    if (kind === "tenant") wakeTenant(state, name);
    else if (kind === "pool") {
      const pool = state.pools.get(name);
      if (pool === undefined) continue;
      if (pool.blocked !== undefined) state.todo.pools.add(name);
      wakeHeldUp(state, pool);
    } else if (kind !== "zone" && !(kind === "launching" && launchesFreely(state, name)))
      dirtyProvider(state, name);
  }
}

/** Whether the provider has no limit of concurrent launches, so that no request waits for the end of a launch. */
function launchesFreely(state: State, provider: string): boolean {
  return state.policy.providers.get(provider)?.maxConcurrency === Number.POSITIVE_INFINITY;
}
