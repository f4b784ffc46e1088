import { isDeepStrictEqual } from "node:util";
import type { Resources } from "@nodeyard/driver";
import { compareRequests } from "@nodeyard/model";
import { quotaFreed } from "./gates.ts";
import { offerHost } from "./host-changes.ts";
import { Hosts } from "./hosts.ts";
import { Inventory } from "./inventory.ts";
import { onFailureRule } from "./launches.ts";
import { PoolQueue } from "./pool-queue.ts";
import type { PoolState } from "./pool-state.ts";
import { sharerOf } from "./shares.ts";
import { onSlotPolicy } from "./slots.ts";
import type { State, Turn } from "./state.ts";
import type { LocalPool, LocalProvider, Policy } from "./types.ts";
import { recountUnreadable } from "./unreadable.ts";
import { dirtyProvider, recheckAll, stopWaiting } from "./waiting.ts";
import type { Waiting } from "./waits.ts";

/** Takes a new configuration, or new facts of a provider. A change of quotas alone wakes only the requests that wait for these quotas. */
export function onPolicy(state: State, turn: Turn, policy: Policy): void {
  const before = state.policy;
  state.policy = policy;
  state.absent.opening(policy.opening ?? [], turn.steady);
  const onlyAmounts = isDeepStrictEqual(withoutAmounts(before), withoutAmounts(policy));
  // Facts are read every few minutes, and concern only the requests that wait for them.
  if (!onlyAmounts) onConfiguration(state, before);
  if (!isDeepStrictEqual(before.failures, policy.failures)) onFailureRule(state, turn);
  for (const [name, provider] of policy.providers) {
    const known = before.providers.get(name);
    if (known !== undefined && isDeepStrictEqual(amountsOf(known), amountsOf(provider))) continue;
    onAmounts(state, provider, known);
  }
}

/** All that a queue, a line or the age of a node depends on. */
function withoutAmounts({ providers, ...others }: Policy): unknown {
  return [
    others,
    [...providers.values()].map(({ name, maxConcurrency, outlivesNodes, slots, place, suspends }) => [
      suspends,
      name,
      maxConcurrency,
      outlivesNodes,
      slots,
      place,
    ]),
  ];
}

/** What a provider can give at present, which changes while nothing is reconfigured. */
function amountsOf({ quota, limits, failing }: LocalProvider): unknown {
  return [quota, limits, failing];
}

/** A provider gives us another amount, or its API began or ceased to fail. */
function onAmounts(state: State, { name, quota }: LocalProvider, known: LocalProvider | undefined): void {
  if (givesMore(known?.quota ?? {}, quota)) quotaFreed(state, name);
  recheckAll(state, "quota", name);
  for (const { policy } of state.pools.values()) {
    if (policy.provider !== name) continue;
    state.todo.pools.add(policy.key);
    for (const label of policy.labels) state.todo.labels.add(label);
  }
}

/** Whether a quota has more of anything than it had. */
function givesMore(before: Resources, after: Resources): boolean {
  return Object.keys(before).some((name) => (after[name] ?? Number.POSITIVE_INFINITY) > before[name]!);
}

/** Requests, nodes and labels that depend on what changed are looked at again, within the budget of the turns to come. */
function onConfiguration(state: State, before: Policy): void {
  const { policy } = state;
  if (!isDeepStrictEqual(before.shares, policy.shares)) onShares(state);
  if (!isDeepStrictEqual(before.budgets, policy.budgets)) onBudgets(state);
  const keys = new Set(policy.pools.map((pool) => pool.key));
  for (const [key, pool] of state.pools) {
    if (keys.has(key)) continue;
    // The requests that wait in this pool are classified again below.
    state.pools.delete(key);
    // Its blocked head reserved capacity of the provider, which the other pools may use now.
    dirtyProvider(state, pool.policy.provider);
  }
  for (const pool of policy.pools) {
    setPool(state, pool);
    state.todo.pools.add(pool.key);
  }
  const touched = touchedLabels(before, policy);
  for (const { id, record } of state.requests.entries())
    if (
      !state.requests.handled.has(id) &&
      (touched?.some((labels) => overlap(labels, record.nodeTypes)) ?? true)
    )
      state.todo.requests.add(id);
  wakeForPrices(state, before);
  for (const label of new Set([...before.labels.keys(), ...policy.labels.keys()]))
    state.todo.labels.add(label);
  if (!isDeepStrictEqual(aboutNodes(before), aboutNodes(policy)))
    for (const id of state.nodes.keys()) state.todo.nodes.add(id);
  // After the pools are set: what an unreadable node may take depends on the needs of their labels.
  recountUnreadable(state);
  onSlotPolicy(state);
  for (const pool of state.pools.values()) if (!pool.policy.launches) offerIdle(state, pool);
}

/** Queues of another order: everything that waits leaves them and is classified anew, and what everybody has is counted anew. */
function onShares(state: State): void {
  const { shares, requests } = state;
  for (const { id } of [...requests.waiting()]) {
    stopWaiting(state, id);
    state.todo.requests.add(id);
  }
  shares.configure(state.policy.shares);
  for (const [id, { record }] of state.nodes) shares.setNode(id, record);
  for (const id of requests.handled) {
    const { entry, handling } = requests.of(id)!;
    if (entry === undefined || handling === undefined) continue;
    const planned = handling.reserved.map(({ node }) => node);
    for (const holder of [...planned, ...handling.claimed]) shares.set(holder, sharerOf(entry.record));
  }
}

/** Other budgets: what everybody spends is counted anew. Levels stay, so that only those that the change alters are told. */
function onBudgets(state: State): void {
  const { spending, budgetLevels, todo } = state;
  spending.configure(state.policy.budgets ?? new Map());
  for (const [id, { record }] of state.nodes) spending.setNode(id, record);
  for (const tenant of [...budgetLevels.keys(), ...spending.tenants]) todo.budgets.add(tenant);
}

/** All that decides what becomes of a node. The present offers of pools are not among it. */
function aboutNodes({ pools, providers, labels, maxHoldAgeMs }: Policy): unknown {
  return [
    labels,
    maxHoldAgeMs,
    pools.map(({ key, id, launches, reuse }) => [key, id, launches, reuse]),
    [...providers.values()].map(({ name, outlivesNodes, place }) => [name, outlivesNodes, place]),
  ];
}

/**
 * Prices are read every few minutes. A request in the queue of a pool keeps its place there, because all pools are planned anew; one that
 * waits for an offering or a limit is classified anew, because another offering may be the best now.
 */
function wakeForPrices(state: State, before: Policy): void {
  const former = new Map(before.pools.map((pool) => [pool.key, pool.offerings]));
  const repriced = state.policy.pools.filter(
    ({ key, offerings }) => !isDeepStrictEqual(offerings, former.get(key)),
  );
  if (repriced.length === 0) return;
  for (const topic of ["gate", "quota", "tenant"] as const)
    for (const { id, record } of state.waits.of(topic))
      if (repriced.some(({ labels }) => overlap(labels, record.nodeTypes))) state.todo.requests.add(id);
}

/** Labels of the pools that changed, which only their own requests depend on. Undefined: what changed may concern every request. */
function touchedLabels(before: Policy, after: Policy): readonly ReadonlySet<string>[] | undefined {
  if (!isDeepStrictEqual(aboutRequests(before), aboutRequests(after))) return undefined;
  const former = before.pools.map(withoutPrices);
  const changed = after.pools.filter((pool, index) => !isDeepStrictEqual(withoutPrices(pool), former[index]));
  return changed.map(({ labels }) => labels);
}

function withoutPrices({ offerings = new Map(), ...pool }: LocalPool): unknown {
  const listed = [...offerings].map(([label, all]) => [label, all.map((one) => ({ ...one, price: null }))]);
  return { ...pool, offerings: listed };
}

/** All that decides which pools a request waits in. */
function aboutRequests({ pools, opening = [], providers, tenantLimits, budgets }: Policy): unknown {
  return [
    tenantLimits,
    budgets,
    opening,
    pools.map(({ key, id, labels, priority, launches }) => [key, id, labels, priority, launches]),
    [...providers.values()].map(({ name, maxConcurrency, slots }) => [name, maxConcurrency, slots]),
  ];
}

/** Whether a request wants any of these labels. */
function overlap(labels: ReadonlySet<string>, wanted: readonly string[]): boolean {
  return wanted.some((label) => labels.has(label));
}

/** Adds a pool, or gives a known one its new configuration; its queue and lines stay. */
function setPool(state: State, policy: LocalPool): void {
  const known = state.pools.get(policy.key);
  if (known === undefined) {
    state.pools.set(policy.key, {
      policy,
      queue: new PoolQueue(state.shares),
      fresh: new Set(),
      woken: new Map(),
      blocked: undefined,
      paused: false,
      inventory: new Inventory<Waiting>(compareRequests),
      turns: new Map(),
      hosts: new Hosts<Waiting>(),
    });
    return;
  }
  // A new component says that it is not paused.
  if (known.policy.id !== policy.id) known.paused = false;
  known.policy = policy;
}

/** Hosts may have been idle before their pool was known. */
function offerIdle(state: State, pool: PoolState): void {
  for (const id of state.idle.ofPool(pool.policy.key)) offerHost(state, pool, id);
}
