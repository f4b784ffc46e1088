import { offeringKey } from "@nodeyard/model";
import { allocate, lookAtNewcomers } from "./allocate.ts";
import { lookAtBudget } from "./budgets.ts";
import { isQuotaWanted, keepPlace } from "./capacity.ts";
import { onGateDue, onQuotaRefused, triedBy } from "./gates.ts";
import { onHostDue } from "./host-changes.ts";
import { onBuilders, onImageDue, wakeForImage } from "./images.ts";
import {
  onFailuresKnown,
  onLaunchDue,
  onLaunchGivenUp,
  onLaunchWanted,
  serveAllLaunches,
} from "./launches.ts";
import { keepReady } from "./min-ready.ts";
import { noteLeaving, onNode, reconsider, reconsiderAges } from "./nodes.ts";
import { onPolicy } from "./policy.ts";
import type { PoolState } from "./pool-state.ts";
import type { RegistryChange } from "./registry.ts";
import { classify, forget, onRequest } from "./requests.ts";
import { forgetSlots, onBacking, onSlotLeft, onSlotLost, onSlotWanted, serveSlots } from "./slots.ts";
import { type State, setVerdict, type Turn } from "./state.ts";
import type { TimerKind } from "./timers.ts";
import type { Output, SchedulerEvent } from "./types.ts";
import { onUnreadable } from "./unreadable.ts";
import { leavePlace, unreserve, wakeFreed, wakeStarts } from "./waiting.ts";

/** The most pieces of deferred work in one turn, so that a turn stays short however much work waits. */
const BUDGET = 256;
/** For how long a cloud's word that a zone has room counts, milliseconds. */
const ROOM_MS = 600_000;
/** Spares of a label run for so long after one could not be suspended, milliseconds. */
const REFUSED_MS = 3_600_000;
/** How often a request with a write of unknown outcome is looked at until the view is complete again, milliseconds. */
const UNSURE_MS = 1_000;

/**
 * One turn of the scheduler: takes events in order, then decides what follows from them. Pure but for `state`, which it owns. `now` is
 * tree time in milliseconds, for the ages of records; `steady` is a clock that never jumps, for pauses and deadlines. The cost of an
 * event depends on what it changes, not on the size of the state.
 */
export function reduce(state: State, events: readonly SchedulerEvent[], now: number, steady = now): Output {
  const turn: Turn = { now, steady, actions: [], changedVerdicts: new Set() };
  state.spending.now = now;
  const failures: { at: string; error: unknown }[] = [];
  // An error in one step is a bug. The other events of the turn are still taken, because they are not delivered a second time.
  const attempt = <T>(at: string, otherwise: T, work: () => T): T => {
    try {
      return work();
    } catch (error) {
      failures.push({ at, error });
      return otherwise;
    }
  };
  for (const event of events) attempt(describeEvent(event), undefined, () => take(state, turn, event));
  // Timers after events: an event of this turn may have cancelled one that is due.
  attempt("timers", undefined, () => fireTimers(state, turn));
  const more = attempt("settling", false, () => settle(state, turn));
  return {
    actions: turn.actions,
    verdicts: [...turn.changedVerdicts].map((request) => ({
      request,
      verdict: state.requests.of(request)?.verdict,
    })),
    nextWake: state.timers.next(),
    more,
    failures,
  };
}

/** The event's type and subject, to name the place of an error. */
function describeEvent(event: SchedulerEvent): string {
  const subject =
    "id" in event ? event.id : "request" in event ? event.request : "node" in event ? event.node : "";
  return `${event.type} ${subject}`.trim();
}

/** Each kind of event changes the state and notes in `todo` what has to be decided anew; requests are planned later, by `settle`. */
function take(state: State, turn: Turn, event: SchedulerEvent): void {
  switch (event.type) {
    case "policy":
      return onPolicy(state, turn, event.policy);
    case "node":
      return onNode(state, turn, event.id, event.after);
    case "request":
      return onRequest(state, turn, event.id, event.after);
    case "unreadable":
      return onUnreadable(state, event);
    case "component":
      return onRegistry(state, state.registry.set(event.key, event.after, state.absent, turn.steady));
    case "image":
      if (event.after === undefined) state.images.facts.delete(event.image);
      else state.images.facts.set(event.image, event.after);
      return wakeForImage(state, event.image);
    case "backing":
      return onBacking(state, event.id, event.after);
    case "caches":
      return state.slots.setCaches(event.backing, event.caches);
    case "slot-wanted":
      return onSlotWanted(state, turn, event.request, event);
    case "slot-left":
      return onSlotLeft(state, event.node);
    case "slot-lost":
      return onSlotLost(state, event.place);
    case "zones-with-room":
      for (const az of event.zones) {
        const key = offeringKey({ provider: event.provider, az, type: event.offered });
        state.zonesWithRoom.set(key, turn.steady + ROOM_MS);
      }
      return;
    case "quota-refused":
      return onQuotaRefused(state, turn, event.provider);
    case "failures":
      return onFailuresKnown(state, turn, event.key, event.after);
    case "launch-wanted":
      return onLaunchWanted(state, turn, event.launch);
    case "launch-given-up":
      return void onLaunchGivenUp(state, event.node);
    case "complete":
      state.complete = event.complete;
      if (!event.complete) return;
      state.absent.found(
        Array.from(state.requests.entries(), ({ id }) => id),
        turn.steady,
      );
      // While the view was incomplete, nothing was decided: a node that is missing in it could be counted as free room.
      lookAtEverything(state);
      serveAllLaunches(state, turn);
      if (state.sweepDue) resetLost(state, turn);
      return;
    case "ages":
      state.agesTrusted = event.trusted;
      if (event.trusted) reconsiderAges(state);
      return;
    case "session-lost":
      return onSessionLost(state);
    case "started":
      return onStarted(state, event.request);
    case "handled":
      return onHandled(state, turn, event);
    case "deleted":
    case "deallocated":
    case "checked":
      return onNodeDone(state, turn, event.node, event.retryMs);
    case "suspended":
      state.minReady.suspending.delete(event.node);
      // Else each spare of the label would be made, refused and deleted in turn.
      if (event.refused) state.timers.set("suspend", event.label, turn.steady + REFUSED_MS);
      return onNodeDone(state, turn, event.node, event.retryMs);
    case "demand":
      state.minReady.demand.set(event.label, event.demand);
      state.todo.labels.add(event.label);
      return;
    case "min-ready-requested":
      state.minReady.asking.delete(event.label);
      // With `retryMs` the requests could not be written; until then the label is left alone.
      if (event.retryMs !== undefined) state.timers.set("label", event.label, turn.steady + event.retryMs);
      state.todo.labels.add(event.label);
      return;
    case "spent":
      state.spending.setEnded(event.tenant, event.month, event.after);
      state.todo.budgets.add(event.tenant);
      return;
    case "sweep":
      for (const tenant of state.spending.tenants) state.todo.budgets.add(tenant);
      return resetLost(state, turn);
    case "tick":
      // Carries no news: a turn is due because a timer has expired or because the former turn left work.
      return;
  }
}

/**
 * Requests that yield to another pool are judged again at every change of the registry. Requests that no pool here can serve, or that
 * all pools declined, depend only on which pools offer which labels, and pools pause and resume all day.
 */
function onRegistry(state: State, change: RegistryChange | undefined): void {
  if (change === undefined) return;
  for (const { id } of state.waits.of("yield")) state.todo.requests.add(id);
  // Only whether a pool is paused has changed, or its priority: which pools offer which labels is the same.
  if (change === "standing") return;
  for (const { id } of state.waits.of("registry")) state.todo.requests.add(id);
  onBuilders(state);
  for (const label of state.minReady.short.keys()) state.todo.labels.add(label);
  for (const { id, record } of state.requests.entries())
    if (record.declinedBy.length > 0) state.todo.requests.add(id);
}

/** Puts everything on the list of deferred work; the turns to come work it off within their budgets. */
function lookAtEverything(state: State): void {
  for (const { id } of state.requests.entries()) state.todo.requests.add(id);
  for (const id of state.nodes.keys()) state.todo.nodes.add(id);
  for (const label of state.policy.labels.keys()) state.todo.labels.add(label);
}

/**
 * The session with the tree ended, and with it all locks and handlers of this launcher. Its requests and nodes are then decided about
 * like those of any other launcher: reservations, claims and promises of slots that no handler keeps are dropped.
 */
function onSessionLost(state: State): void {
  const handled = [...state.requests.handled];
  for (const id of handled) {
    // Reservations of launches that have no record.
    for (const launch of state.requests.of(id)!.handling!.reserved) unreserve(state, launch.node);
    state.todo.requests.add(id);
  }
  for (const node of [...state.requests.claims, ...state.busyNodes]) state.todo.nodes.add(node);
  for (const node of state.requests.claims) state.shares.setNode(node, state.nodes.get(node)?.record);
  const busy = [...state.busyNodes];
  for (const closed of state.gates.closed.values()) closed.trying = undefined;
  for (const request of state.slots.requests()) forgetSlots(state, request);
  for (const id of handled) state.requests.end(id);
  state.busyNodes.clear();
  state.minReady.suspending.clear();
  for (const node of busy) noteLeaving(state, node, state.nodes.get(node));
  state.minReady.asking.clear();
  for (const key of state.pools.keys()) state.todo.pools.add(key);
}

/** All launches of a request have begun, so it no longer counts against the number of requests that may begin at once. */
function onStarted(state: State, request: string): void {
  const started = state.requests.started(request);
  if (started === undefined) return;
  // The nodes that it claimed are no longer idle, so min-ready may have to replace them.
  for (const node of started.claimed)
    for (const label of state.nodes.get(node)?.record.type ?? []) state.todo.labels.add(label);
  wakeStarts(state);
}

/** The handler of a request has ended. Its reservations go, and the request is either over or tried again after `retryMs`. */
function onHandled(state: State, turn: Turn, event: Extract<SchedulerEvent, { type: "handled" }>): void {
  const { request } = event;
  // Undefined after a lost session, which has ended the handling here already.
  const handling = state.requests.of(request)?.handling;
  if (handling === undefined) return;
  onStarted(state, request);
  triedBy(state, turn, request);
  state.requests.end(request);
  forgetSlots(state, request);
  for (const launch of handling.reserved) wakeFreed(state, unreserve(state, launch.node));
  for (const node of handling.claimed) {
    state.shares.setNode(node, state.nodes.get(node)?.record);
    state.todo.nodes.add(node);
  }
  for (const node of state.allocated.get(request) ?? []) state.todo.nodes.add(node);
  const entry = state.requests.entry(request);
  if (entry?.record.state !== "requested" && entry?.record.state !== "pending")
    return forget(state, turn, request);
  // Another launcher had its lock and has put it back since: there is nothing to wait for.
  const others = handling.version !== entry.version && entry.record.state === "requested";
  const ours = event.putBack === true || event.unsure === true;
  if (event.retryMs !== undefined && (ours || !others)) {
    const nextTry = turn.steady + event.retryMs;
    // The reply to the last write was lost. If the write was applied, the request later appears as `pending` without a handler.
    if (event.unsure === true) state.timers.set("unsure", request, nextTry);
    // A reset that found the lock taken: another launcher handles the request, and only the next sweep tries again. A request that this
    // launcher gave up does not wait for the sweep.
    if (entry.record.state === "pending" && handling.pool === "") return;
    state.timers.set("request", request, nextTry);
    const pool = state.pools.get(handling.pool);
    if (event.putBack === true && pool !== undefined)
      keepPlace(state, pool, {
        id: request,
        relativePriority: entry.record.relativePriority,
        record: entry.record,
      });
    setVerdict(state, turn, request, "retry.later", {}, nextTry);
  } else state.todo.requests.add(request);
}

/** A controller has ended its work on a node; with `retryMs` it failed and is to be repeated after that time. */
function onNodeDone(state: State, turn: Turn, node: string, retryMs: number | undefined): void {
  if (retryMs !== undefined && state.nodes.has(node)) {
    state.timers.set("busy", node, turn.steady + retryMs);
    // The node still exists until the next attempt, so its capacity is not free soon, unless its record says that it is being deleted.
    state.leaving.set(node, undefined);
    noteLeaving(state, node, state.nodes.get(node));
    return;
  }
  release(state, node);
}

/** No controller works on a node any more. */
function release(state: State, node: string): void {
  state.busyNodes.delete(node);
  noteLeaving(state, node, state.nodes.get(node));
  state.todo.nodes.add(node);
}

/** A pending request without a handler in this launcher may have lost its handler; the launcher that gets its lock resets it. */
function resetLost(state: State, turn: Turn): void {
  state.sweepDue = !state.complete;
  if (!state.complete) return;
  for (const request of state.requests.pending) reset(state, turn, request);
}

/** Lets a controller put a pending request back, unless this launcher handles it. */
function reset(state: State, turn: Turn, request: string): void {
  if (state.requests.handled.has(request)) return;
  // A handling without a pool: no pool of this launcher accepted it, and no capacity is reserved for it.
  state.requests.begin(request, { pool: "", reserved: [], claimed: [] }, false);
  turn.actions.push({ type: "reset", request });
}

/** What is done when a timer expires, by its kind. */
const onDue: Readonly<Record<TimerKind, (state: State, turn: Turn, name: string) => void>> = {
  node: reconsider,
  busy: (state, _, node) => release(state, node),
  request: (state, turn, id) => {
    leavePlace(state, id);
    state.todo.requests.add(id);
    if (state.complete && state.requests.pending.has(id)) reset(state, turn, id);
  },
  unsure: (state, turn, id) => {
    // Only a complete view shows whether the write of unknown outcome was applied.
    if (!state.complete) state.timers.set("unsure", id, turn.steady + UNSURE_MS);
    else if (state.requests.pending.has(id)) reset(state, turn, id);
  },
  yield: (state, _, id) => state.todo.requests.add(id),
  offer: (state, _, id) => state.todo.requests.add(id),
  budget: (state, _, tenant) => state.todo.budgets.add(tenant),
  label: (state, _, label) => state.todo.labels.add(label),
  short: (state, _, label) => state.todo.labels.add(label),
  spares: (state, _, label) => state.todo.labels.add(label),
  suspend: (state, _, label) => state.todo.labels.add(label),
  image: onImageDue,
  gate: onGateDue,
  launch: onLaunchDue,
  quota: (state, turn, provider) => {
    if (isQuotaWanted(state, provider)) turn.actions.push({ type: "ask-quota", provider });
  },
  host: (state, _, host) => onHostDue(state, host),
};

/** Names that are due are taken out before they are handled, so a handler may set the same timer again. */
function fireTimers(state: State, turn: Turn): void {
  const { timers } = state;
  for (let due = timers.take(turn.steady); due !== undefined; due = timers.take(turn.steady))
    onDue[due.kind](state, turn, due.name);
}

/**
 * Does the work that the events left, within the budget. True when work is left. Budgets of tenants come first, because they wake and park
 * requests; then nodes, because they decide what is idle; then requests, which fill the queues; then the queues of pools. Min-ready comes last, because it counts the idle nodes that the requests of
 * this turn have left.
 */
function settle(state: State, turn: Turn): boolean {
  // After all events of the turn: a node and the ledger that its deletion was added to may have arrived in either order.
  for (const tenant of state.todo.budgets) {
    state.todo.budgets.delete(tenant);
    lookAtBudget(state, turn, tenant);
  }
  let budget = BUDGET;
  for (const id of state.todo.nodes) {
    if (budget-- <= 0) return true;
    state.todo.nodes.delete(id);
    reconsider(state, turn, id);
  }
  for (const id of state.todo.requests) {
    if (budget-- <= 0) return true;
    state.todo.requests.delete(id);
    const entry = state.requests.entry(id);
    if (entry?.record.state === "requested" && !state.requests.handled.has(id)) classify(state, turn, entry);
  }
  // Without a complete view no node is planned; the event `complete` puts everything on the list again.
  if (!state.complete) return false;
  for (const pool of poolsToDo(state)) {
    state.todo.pools.delete(pool.policy.key);
    state.todo.newcomers.delete(pool.policy.key);
    // Each pool gets one piece of work even when the budget is spent: else the same first pools would use it up every turn.
    budget = allocate(state, turn, pool, Math.max(budget, 1));
  }
  for (const key of state.todo.newcomers) {
    state.todo.newcomers.delete(key);
    const pool = state.pools.get(key);
    if (pool !== undefined) budget = lookAtNewcomers(state, turn, pool, Math.max(budget, 1));
  }
  for (const line of state.todo.slots) {
    state.todo.slots.delete(line);
    serveSlots(state, turn, line);
  }
  for (const label of state.todo.labels) {
    state.todo.labels.delete(label);
    keepReady(state, turn, label);
  }
  const { requests, nodes, pools, newcomers } = state.todo;
  return requests.size > 0 || nodes.size > 0 || pools.size > 0 || newcomers.size > 0;
}

/** Pools with something to try, preferred ones first. A pool that the configuration no longer has is dropped from the list. */
function poolsToDo(state: State): readonly PoolState[] {
  const found: PoolState[] = [];
  for (const key of state.todo.pools) {
    const pool = state.pools.get(key);
    if (pool === undefined) state.todo.pools.delete(key);
    else found.push(pool);
  }
  return found.sort((a, b) => a.policy.priority - b.policy.priority);
}
