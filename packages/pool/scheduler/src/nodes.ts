import { isSuspended, MIN_READY, type NodeState, reuseOf } from "@nodeyard/model";
import { type NodeEntry, poolKey } from "@nodeyard/view";
import { noteReady } from "./candidates.ts";
import { offeringOf, quotaFreed, roomFreed } from "./gates.ts";
import { hostLeft, hostThere, offerHost, onTenantTook } from "./host-changes.ts";
import { indexMaking } from "./launches.ts";
import { oneInstance } from "./needs.ts";
import { dueAt, forgetDue, noteState } from "./node-due.ts";
import { isElsewhere } from "./place.ts";
import { freeForMs, isBeingMade, notUsedAgain } from "./reuse.ts";
import { removeFree, type State, type Turn } from "./state.ts";
import { zoneKey } from "./used.ts";
import { unreserve, wakeForLabels, wakeFreed } from "./waiting.ts";

/** States of nodes that are being deleted or will be: their capacity becomes free without any action of the scheduler. */
const LEAVING: ReadonlySet<string> = new Set<NodeState>(["used", "deleting", "deleted", "failed", "aborted"]);

/** A node record appeared, changed or was deleted (`after` undefined). Updates the indexes, then decides about the node. */
export function onNode(state: State, turn: Turn, id: string, after: NodeEntry | undefined): void {
  const before = state.nodes.get(id);
  if (after === undefined) state.nodes.delete(id);
  else state.nodes.set(id, after);
  // A deadline belongs to the state for which it was computed. The view may skip states, so every change of state resets it.
  const changed = before?.record.state !== after?.record.state;
  if (changed) forgetDue(state, id);
  if (after === undefined) state.stateTimes.forget(id);
  else if (before !== undefined && (changed || before.record.stateTime !== after.record.stateTime))
    noteState(state, turn, after);
  noteReady(state, before, after);
  indexAllocation(state, before, after);
  for (const index of ["stock", "inUse", "parking"] as const) indexLabel(state, index, before, after);
  account(state, turn, id, before, after);
  // A node that is promised counts already, before its record says so.
  if (after?.record.allocatedTo !== null || !state.requests.claims.has(id))
    state.shares.setNode(id, after?.record);
  if (before?.record !== after?.record)
    for (const tenant of state.spending.setNode(id, after?.record)) state.todo.budgets.add(tenant);
  if (before !== undefined && (after === undefined || !samePool(before, after)))
    hostLeft(state, turn, before);
  reconsider(state, turn, id);
}

function samePool({ record: a }: NodeEntry, { record: b }: NodeEntry): boolean {
  return a.provider === b.provider && a.pool === b.pool;
}

/** Decides what to do with a node: offer it, deallocate it, delete it, or look at it later. */
export function reconsider(state: State, turn: Turn, id: string): void {
  const entry = state.nodes.get(id);
  const { timers } = state;
  indexMaking(state, turn, id);
  if (entry === undefined) {
    unoffer(state, id);
    forgetDue(state, id);
    state.busyNodes.delete(id);
    return;
  }
  const { record } = entry;
  const key = poolKey(record.provider, record.pool);
  // Also a host in use counts: a request for more hosts than there are must not wait for them.
  hostThere(state, entry, key);
  const free =
    (record.state === "ready" || isSuspended(record)) &&
    record.allocatedTo === null &&
    entry.contenders.length === 0 &&
    // Also where its deletion has to wait.
    freeForMs(state, record) > 0 &&
    !isElsewhere(record, state.policy.providers.get(record.provider ?? "")?.place);
  if (free && !state.busyNodes.has(id) && !state.requests.claims.has(id)) offer(state, entry, key);
  else unoffer(state, id);
  // A node with a lock or a claim belongs to its holder: nothing is due on it until the lock is released.
  const held = entry.contenders.length > 0 || state.requests.claims.has(id);
  if (held) forgetDue(state, id);
  // Without a complete view the record may be out of date, and its request may only be missing in the picture.
  if (held || !state.complete || state.busyNodes.has(id) || !isOurs(state, entry)) return;
  const due = dueAt(state, turn, entry);
  if (due === undefined) timers.delete("node", id);
  else if (due > turn.steady) timers.set("node", id, due);
  else act(state, turn, entry);
}

/** Only providers that this launcher has in its configuration are touched. */
function isOurs(state: State, { record }: NodeEntry): boolean {
  return record.provider === null || state.policy.providers.has(record.provider);
}

/** The time of the node has come: takes it back from a request that is gone, has it checked for another use, or deletes it. */
function act(state: State, turn: Turn, entry: NodeEntry): void {
  const { record } = entry;
  if (record.state === "used") {
    const why = notUsedAgain(state, turn, entry);
    if (why !== undefined) return retire(state, turn, entry, why);
    take(state, entry);
    turn.actions.push({ type: "check", node: entry.id, version: entry.version });
    return;
  }
  if (record.state !== "ready" || record.allocatedTo === null)
    return retire(state, turn, entry, reasonFor(record));
  take(state, entry);
  turn.actions.push({ type: "deallocate", node: entry.id });
}

/** Deletes a node that nobody has. */
export function retire(state: State, turn: Turn, entry: NodeEntry, why: string): void {
  take(state, entry);
  state.leaving.set(entry.id, poolKey(entry.record.provider, entry.record.pool));
  turn.actions.push({ type: "delete", node: entry.id, version: entry.version, why });
}

/** A controller works on the node from now on. */
export function take(state: State, { id }: NodeEntry): void {
  forgetDue(state, id);
  state.busyNodes.add(id);
  unoffer(state, id);
}

/** Why a node is deleted, for the journal. */
function reasonFor(record: NodeEntry["record"]): string {
  const { state: nodeState } = record;
  if (nodeState === "ready" && (reuseOf(record)?.times ?? 0) > 0) return "not used again in time";
  if (nodeState === "ready") return "older than max-ready-age";
  if (nodeState === "hold") return "held longer than allowed";
  if (nodeState === "testing") return "its trial launch is not needed any more";
  if (nodeState === "init") return "never locked after it was made";
  return nodeState;
}

/** Tree time is known again, and may differ by minutes from the former estimate: all times that depend on an age are computed again. */
export function reconsiderAges(state: State): void {
  for (const id of state.nodes.keys()) state.todo.nodes.add(id);
  for (const label of state.policy.labels.keys()) state.todo.labels.add(label);
}

/** Enters a free node into the indexes of idle nodes, and wakes the requests that wait for one of its labels. */
function offer(state: State, { id, record }: NodeEntry, key: string): void {
  const index = isSuspended(record) ? state.suspended : reuseOf(record)?.only ? state.kept : state.idle;
  if (index.has(id)) return;
  removeFree(state, id);
  const labels = record.type;
  index.add(id, key, labels, record.az);
  for (const label of labels) state.todo.labels.add(label);
  const pool = state.pools.get(key);
  if (pool === undefined) return;
  // Hosts of a pool without launches are kept for requests one by one; other idle nodes go to the first in line.
  if (pool.policy.launches) wakeForLabels(state, pool, labels);
  else offerHost(state, pool, id);
  if (pool.queue.size > 0) state.todo.pools.add(key);
}

/** Removes a node from the indexes of idle nodes. */
function unoffer(state: State, id: string): void {
  const place = removeFree(state, id);
  if (place === undefined) return;
  const pool = state.pools.get(place.pool);
  pool?.inventory.remove(id);
  for (const label of place.labels) {
    state.todo.labels.add(label);
    // The plan of the blocked head may contain this node. Without it, the head may wait for something else and block no other request.
    if (pool?.blocked?.waiting.record.nodeTypes.includes(label)) state.todo.pools.add(place.pool);
  }
}

/** Keeps the index of nodes by the request to which they are allocated. */
function indexAllocation(state: State, before: NodeEntry | undefined, after: NodeEntry | undefined): void {
  const [old, now] = [before?.record.allocatedTo, after?.record.allocatedTo];
  if (old === now) return;
  const id = (before ?? after)!.id;
  if (old) {
    const ids = state.allocated.get(old);
    ids?.delete(id);
    if (ids?.size === 0) state.allocated.delete(old);
  }
  if (now) {
    const ids = state.allocated.get(now) ?? new Set();
    state.allocated.set(now, ids.add(id));
  }
}

/** The label of a ready node that min-ready requested; undefined once another requestor has the node. */
function stockLabel(entry: NodeEntry | undefined): string | undefined {
  const record = entry?.record;
  return record?.state === "ready" && record.requestor === MIN_READY ? record.type[0] : undefined;
}

/** The label of a node that a client uses. */
function usedLabel(entry: NodeEntry | undefined): string | undefined {
  return entry?.record.state === "in-use" ? entry.record.type[0] : undefined;
}

/** The label of a node that is suspended or being suspended, by its record alone: whoever locks it, it is not missing. */
function parkedLabel(entry: NodeEntry | undefined): string | undefined {
  const record = entry?.record;
  if (record === undefined || record.allocatedTo !== null || reuseOf(record)?.checking) return undefined;
  return record.state === "building" || isSuspended(record) ? record.type[0] : undefined;
}

const LABELS = { stock: stockLabel, inUse: usedLabel, parking: parkedLabel } as const;

/** Keeps an index of nodes by label. */
function indexLabel(
  state: State,
  index: keyof typeof LABELS,
  before: NodeEntry | undefined,
  after: NodeEntry | undefined,
): void {
  const of = LABELS[index];
  const [old, now] = [of(before), of(after)];
  if (old === now) return;
  const { id } = (before ?? after)!;
  for (const [label, add] of [
    [old, false],
    [now, true],
  ] as const) {
    if (label === undefined) continue;
    const ids = state.minReady[index].get(label) ?? new Set();
    if (add) state.minReady[index].set(label, ids.add(id));
    else if (ids.delete(id) && ids.size === 0) state.minReady[index].delete(label);
    state.todo.labels.add(label);
  }
}

/**
 * Counts what a node uses. A node counts in every state until its znode is gone (docs/contract/launcher.md, "Quota and limits"). A new
 * record replaces the reservation that was made when its request was accepted.
 */
function account(
  state: State,
  turn: Turn,
  id: string,
  before: NodeEntry | undefined,
  after: NodeEntry | undefined,
): void {
  // A lock says nothing here: most events of nodes are of locks.
  if (before !== undefined && before.record === after?.record) return noteLeaving(state, id, after);
  const keys = after === undefined ? undefined : usageKeys(after);
  if (
    before !== undefined &&
    keys !== undefined &&
    before.record.resources === after!.record.resources &&
    sameKeys(state.usage.keysOf(id), keys)
  )
    return noteLeaving(state, id, after);
  let freed: readonly string[] = [];
  if (after === undefined || keys === undefined) freed = state.usage.delete(id) ?? [];
  else {
    if (before === undefined) dropReservation(state, after);
    freed = state.usage.set(id, keys, amountOf(state, after));
    const { tenantName, allocatedTo } = after.record;
    if (tenantName !== null && allocatedTo !== null) onTenantTook(state, tenantName);
  }
  noteLeaving(state, id, after);
  // A record whose launch was refused never had a machine, so its deletion frees nothing of the cloud's quota.
  if (after === undefined && before?.record.externalId != null) {
    const { record } = before;
    quotaFreed(state, record.provider ?? "");
    // One that never came up may be what the cloud had no room for: its end would begin the next try at once, again and again.
    if (record.interfaceIp !== null)
      for (const label of record.type) roomFreed(state, turn, offeringOf(state, record, label));
  }
  wakeFreed(state, freed);
}

/**
 * Keeps the count of nodes whose capacity becomes free by itself. A node that is deleted to make room counts from the decision on,
 * because its record changes later.
 */
export function noteLeaving(state: State, id: string, entry: NodeEntry | undefined): void {
  if (entry === undefined) return state.leaving.set(id, undefined);
  const { state: nodeState, provider, pool } = entry.record;
  // Until it is decided whether it is used again.
  const isOpen = nodeState === "used" && reuseOf(entry.record) !== undefined;
  const going = (LEAVING.has(nodeState) && !isOpen) || (state.leaving.has(id) && state.busyNodes.has(id));
  state.leaving.set(id, going ? poolKey(provider, pool) : undefined);
}

/** The sums in which a node counts. */
function usageKeys({ record }: NodeEntry): string[] {
  const pool = poolKey(record.provider, record.pool);
  const keys = [`pool ${pool}`, `provider ${record.provider ?? ""}`];
  if (record.az !== null) keys.push(zoneKey(pool, record.az));
  if (isBeingMade(record)) keys.push(`launching ${record.provider ?? ""}`);
  // A deallocated node keeps the name of its last tenant in its record, but counts for no tenant.
  if (record.tenantName !== null && record.allocatedTo !== null) keys.push(`tenant ${record.tenantName}`);
  return keys;
}

/** In the same order, as `usageKeys` makes them. */
function sameKeys(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((key, index) => key === b[index]);
}

/** What a node uses: the amounts of its record, else those of its label here, else one instance. */
function amountOf(state: State, { record }: NodeEntry): Readonly<Record<string, number>> {
  const known = record.resources;
  if (known !== null && Object.keys(known).length > 0) return { instances: 1, ...known };
  const pool = state.pools.get(poolKey(record.provider, record.pool))?.policy;
  const need = pool?.needs.get(record.type[0] ?? "") ?? oneInstance;
  return { instances: 1, ...need };
}

/** The record of a launch has appeared: from now on the record counts, and no longer the reservation. */
function dropReservation(state: State, { record }: NodeEntry): void {
  const handling = state.requests.of(record.allocatedTo ?? "")?.handling;
  // Reservations of one label are alike, so any of them stands for this record.
  const index = handling?.reserved.findIndex((launch) => record.type.includes(launch.label)) ?? -1;
  if (handling === undefined || index < 0) return;
  const [launch] = handling.reserved.splice(index, 1);
  unreserve(state, launch!.node);
}
