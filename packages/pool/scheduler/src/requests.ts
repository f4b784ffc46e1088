import { MIN_READY } from "@nodeyard/model";
import type { RequestEntry } from "@nodeyard/view";
import type { AwaitedOffer } from "./absent-offers.ts";
import { onSlotRequest } from "./slots.ts";
import { clearVerdict, type State, setVerdict, type Turn } from "./state.ts";
import { enqueue, forgetYield, leavePlace, stopWaiting, wakeTenant } from "./waiting.ts";
import type { Waiting } from "./waits.ts";

/** Milliseconds without new min-ready requests for a label after all pools declined one. */
const DECLINED_MS = 15_000;

/** A request appeared, changed or was deleted (`after` undefined). */
export function onRequest(state: State, turn: Turn, id: string, after: RequestEntry | undefined): void {
  const before = state.requests.see(id, after);
  noteMinReady(state, turn, before, after);
  onSlotRequest(state, turn, id, before, after);
  if (state.requests.handled.has(id)) return;
  const waiting = state.requests.of(id)?.waiting;
  if (after?.record.state === "requested") {
    if (before === undefined || wasPending(before, after)) {
      releaseAllocations(state, id);
      // Another launcher held the lock and has put the request back: the pause that this launcher made for it has no reason any more.
      leavePlace(state, id);
    }
    if (waiting !== undefined && sameForUs(waiting, after)) return;
    classify(state, turn, after);
    return;
  }
  forget(state, turn, id);
  // Nobody will take the nodes of a request that is gone.
  if (after === undefined) releaseAllocations(state, id);
}

/** Whether a request has been accepted and put back since `before`. A fast launcher writes both before others read the record again. */
function wasPending(before: RequestEntry, after: RequestEntry): boolean {
  return before.record.state !== "requested" || after.version > before.version + 1;
}

/** Removes a request from all queues, lines and timers, and deletes its verdict. */
export function forget(state: State, turn: Turn, id: string): void {
  const waiting = stopWaiting(state, id);
  // The part of the tenant's limit that was kept for this request goes to the tenant's other requests.
  if (waiting?.record.tenantName != null) wakeTenant(state, waiting.record.tenantName);
  state.todo.requests.delete(id);
  forgetYield(state, id);
  state.timers.delete("offer", id);
  leavePlace(state, id);
  clearVerdict(state, turn, id);
  state.requests.prune(id);
}

/**
 * Puts a `requested` request into the queue of each pool here that offers all of its labels. If there is none, this launcher declines
 * for its pools, unless another registered pool could serve the request: then it waits for a change of the registry.
 */
export function classify(state: State, turn: Turn, entry: RequestEntry): void {
  const { id, record } = entry;
  stopWaiting(state, id);
  // Incomplete: it is classified when the view is whole. With a timer it was put back for a pause, which is not over.
  if (!state.complete || state.timers.get("request", id) !== undefined) return;

  const { registry } = state;
  if (registry.allDeclined(record.declinedBy)) {
    if (!awaitOffer(state, turn, entry)) decline(state, turn, id, [], "every registered pool has declined");
    return;
  }
  const waiting: Waiting = { id, relativePriority: record.relativePriority, record };
  const unable: string[] = [];
  let able = false;
  // In every pool that can: the first one that has room takes it, and it leaves the other queues then.
  for (const pool of state.pools.values()) {
    const { policy } = pool;
    if (record.declinedBy.includes(policy.id) || isInert(state, policy.provider)) continue;
    if (record.nodeTypes.every((label) => policy.labels.has(label))) {
      able = true;
      enqueue(state, pool, waiting);
    } else unable.push(policy.id);
  }
  const known = state.requests.at(id);
  if (able) known.waiting = waiting;
  if (able) {
    const { code } = known.verdict ?? {};
    if (code === "retry.later" || code === "offer.awaited") clearVerdict(state, turn, id);
    return;
  }
  // Every pool here has declined or is inert, so there is nothing to decline.
  if (unable.length === 0) return;
  // Pools of other launchers, or inert ones of ours.
  const others = registry.candidates(record.nodeTypes, record.declinedBy);
  if (others.length === 0) {
    if (awaitOffer(state, turn, entry)) return;
    decline(
      state,
      turn,
      id,
      unable,
      `node type(s) [${missing(state, record.nodeTypes).join(",")}] not available`,
    );
    return;
  }
  known.waiting = waiting;
  state.waits.join("registry", "", waiting);
  const inert = inertProviders(
    state,
    others.map((pool) => pool.id),
  );
  if (inert === undefined) setVerdict(state, turn, id, "yield.capable", { labels: record.nodeTypes });
  else setVerdict(state, turn, id, "provider.inert", { providers: inert });
}

/** Lets a request wait for an offer that is not registered at present; false: there is none to wait for. */
function awaitOffer(state: State, turn: Turn, { id, record }: RequestEntry): boolean {
  const offer = awaitedOffer(state, turn.steady, { id, record });
  if (offer === undefined) return false;
  const waiting: Waiting = { id, relativePriority: record.relativePriority, record };
  state.requests.at(id).waiting = waiting;
  state.waits.join("registry", "", waiting);
  state.timers.set("offer", id, offer.until);
  const { provider = null, until } = offer;
  setVerdict(state, turn, id, "offer.awaited", { labels: record.nodeTypes, provider }, until);
  return true;
}

/** The offer for which a request may wait although all registered pools lack its labels or declined it; undefined: it may fail. */
export function awaitedOffer(
  { absent, registry }: Pick<State, "absent" | "registry">,
  steady: number,
  { id, record }: Pick<RequestEntry, "id" | "record">,
): AwaitedOffer | undefined {
  const { nodeTypes, declinedBy } = record;
  return absent.awaited(id, nodeTypes, declinedBy, registry.candidates(nodeTypes, []), steady);
}

/** Lets a controller decline the request for `pools`. Until the event `handled`, this launcher plans nothing for the request. */
export function decline(
  state: State,
  turn: Turn,
  id: string,
  pools: readonly string[],
  reason: string,
): void {
  const waiting = stopWaiting(state, id);
  if (waiting?.record.tenantName != null) wakeTenant(state, waiting.record.tenantName);
  state.requests.begin(id, { pool: "", reserved: [], claimed: [] }, false);
  turn.actions.push({ type: "decline", request: id, pools, reason });
}

/** Whether the configuration lets a provider launch nothing (`max-concurrency: 0`); its pools then look at no request. */
export function isInert(state: State, provider: string): boolean {
  return state.policy.providers.get(provider)?.maxConcurrency === 0;
}

/** Providers of `pools`, if all of these are ours and look at no request. */
export function inertProviders(state: State, pools: readonly string[]): readonly string[] | undefined {
  const inert = [...state.pools.values()].filter(({ policy }) => isInert(state, policy.provider));
  const found = inert.filter(({ policy }) => pools.includes(policy.id));
  if (pools.length === 0 || found.length < pools.length) return undefined;
  return [...new Set(found.map(({ policy }) => policy.provider))];
}

/** Labels that no pool here offers; all of them when each is offered, but no pool offers all. */
function missing(state: State, labels: readonly string[]): string[] {
  const offered = [...state.pools.values()];
  const lacking = labels.filter((label) => !offered.some((pool) => pool.policy.labels.has(label)));
  return [...new Set(lacking.length > 0 ? lacking : labels)];
}

/** Compares only the fields on which its place or a decision depends. After a change of other fields the request keeps its places. */
function sameForUs(waiting: Waiting, entry: RequestEntry): boolean {
  const [a, b] = [waiting.record, entry.record];
  return (
    a.relativePriority === b.relativePriority &&
    a.provider === b.provider &&
    a.reuse === b.reuse &&
    a.tenantName === b.tenantName &&
    equal(a.declinedBy, b.declinedBy) &&
    equal(a.nodeTypes, b.nodeTypes)
  );
}

function equal(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index]);
}

/** Keeps the index of open min-ready requests of all launchers, by label. */
function noteMinReady(
  state: State,
  turn: Turn,
  before: RequestEntry | undefined,
  after: RequestEntry | undefined,
): void {
  for (const [entry, add] of [
    [before, false],
    [after, true],
  ] as const) {
    if (entry?.record.requestor !== MIN_READY) continue;
    const label = entry.record.nodeTypes[0];
    if (label === undefined) continue;
    const open = add && entry.record.state !== "failed";
    // All pools declined it. Without a pause, requests would be written and deleted in a loop.
    if (add && !open && before?.record.state !== "failed")
      state.timers.set("label", label, turn.steady + DECLINED_MS);
    const ids = state.minReady.open.get(label) ?? new Set();
    if (open) state.minReady.open.set(label, ids);
    if (open) ids.add(entry.id);
    else if (ids.delete(entry.id) && ids.size === 0) state.minReady.open.delete(label);
    state.todo.labels.add(label);
  }
}

/** The request is gone or was put back, so the nodes that are allocated to it may be free or have to be deallocated. */
function releaseAllocations(state: State, request: string): void {
  for (const node of state.allocated.get(request) ?? []) state.todo.nodes.add(node);
}
