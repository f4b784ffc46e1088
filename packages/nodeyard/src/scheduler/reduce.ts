import { allocate, lookAtNewcomers } from "./allocate.ts";
import { onHostDue } from "./host-line.ts";
import { onBuilders, onImageDue, wakeForImage } from "./images.ts";
import { keepReady } from "./min-ready.ts";
import { onNode, reconsider, reconsiderAges, wakeFreed } from "./nodes.ts";
import { onOffering, onOfferingDue, triedBy } from "./offerings.ts";
import { onPolicy } from "./policy.ts";
import { isQuotaWanted, onQuotaRefused, probed } from "./refusals.ts";
import type { RegistryChange } from "./registry.ts";
import { classify, forget, onRequest } from "./requests.ts";
import { type State, setVerdict, type Turn } from "./state.ts";
import type { Output, SchedulerEvent } from "./types.ts";
import { onUnreadable } from "./unreadable.ts";
import { dirtyProvider } from "./waiting.ts";

/** Pieces of deferred work done in one turn, at most: a turn stays short whatever waits. */
const BUDGET = 256;
/** A request whose last write may have happened is looked at this often until the picture is whole again, milliseconds. */
const UNSURE_MS = 1_000;

/**
 * One turn of the scheduler: takes events in order, then decides what follows from them. Pure but for `state`, which it
 * owns; `now` is tree time in milliseconds, which records are held against, `steady` a clock that never jumps, by which everything is
 * waited out. What an event costs depends on what it changes, not on what there is.
 */
export function reduce(state: State, events: readonly SchedulerEvent[], now: number, steady = now): Output {
  const turn: Turn = { now, steady, actions: [], changedVerdicts: new Set() };
  const failures: { at: string; error: unknown }[] = [];
  const attempt = <T>(at: string, otherwise: T, work: () => T): T => {
    try {
      return work();
    } catch (error) {
      failures.push({ at, error });
      return otherwise;
    }
  };
  for (const event of events) attempt(describeEvent(event), undefined, () => take(state, turn, event));
  attempt("timers", undefined, () => fireTimers(state, turn));
  const more = attempt("settling", false, () => settle(state, turn));
  return {
    actions: turn.actions,
    verdicts: [...turn.changedVerdicts].map((request) => ({ request, verdict: state.verdicts.get(request) })),
    nextWake: state.timetable.next(),
    more,
    failures,
  };
}

function describeEvent(event: SchedulerEvent): string {
  const subject =
    "id" in event ? event.id : "request" in event ? event.request : "node" in event ? event.node : "";
  return `${event.type} ${subject}`.trim();
}

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
      return onRegistry(state, state.registry.set(event.key, event.after));
    case "image":
      if (event.after === undefined) state.images.delete(event.image);
      else state.images.set(event.image, event.after);
      return wakeForImage(state, event.image);
    case "quota-refused":
      return onQuotaRefused(state, turn, event.provider);
    case "offering":
      return onOffering(state, turn, event.key, event.after);
    case "complete":
      state.complete = event.complete;
      if (!event.complete) return;
      lookAtEverything(state);
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
      return onNodeDone(state, turn, event.node, event.retryMs);
    case "min-ready-requested":
      state.minReadyAsking.delete(event.label);
      if (event.retryMs !== undefined)
        state.timetable.set(`label ${event.label}`, turn.steady + event.retryMs);
      state.dirtyLabels.add(event.label);
      return;
    case "sweep":
      return resetLost(state, turn);
    case "tick":
      return;
  }
}

/**
 * Requests that let another pool go first are judged again whenever the registry changes. What nobody here can serve, and what
 * everyone declined, depends only on who offers what: pools pause and go on all day.
 */
function onRegistry(state: State, change: RegistryChange | undefined): void {
  if (change === undefined) return;
  for (const pool of state.pools.values()) {
    for (const id of pool.yielding.keys()) state.recheck.add(id);
  }
  if (change === "standing") return;
  for (const id of state.incapable) state.recheck.add(id);
  onBuilders(state);
  for (const label of state.minReadyShort.keys()) state.dirtyLabels.add(label);
  for (const [id, entry] of state.requests) if (entry.record.declinedBy.length > 0) state.recheck.add(id);
}

function lookAtEverything(state: State): void {
  for (const id of state.requests.keys()) state.recheck.add(id);
  for (const id of state.nodes.keys()) state.recheckNodes.add(id);
  for (const label of state.policy.labels.keys()) state.dirtyLabels.add(label);
}

/** Handlers die with the session; their requests and nodes are looked at as anybody's. */
function onSessionLost(state: State): void {
  for (const [id, handling] of state.handling) {
    for (const launch of handling.reserved) state.usage.delete(launch.node);
    state.recheck.add(id);
  }
  for (const node of state.claimed.keys()) state.recheckNodes.add(node);
  for (const node of state.busyNodes) state.recheckNodes.add(node);
  state.offerings.trying.clear();
  for (const refusal of state.refusals.values()) refusal.probe = undefined;
  state.handling.clear();
  state.claimed.clear();
  state.busyNodes.clear();
  state.makingRoom.clear();
  state.minReadyAsking.clear();
  state.starting.clear();
  for (const key of state.pools.keys()) state.dirty.add(key);
}

function onStarted(state: State, request: string): void {
  if (!state.starting.delete(request)) return;
  for (const node of state.handling.get(request)?.claimed ?? [])
    for (const label of state.nodes.get(node)?.record.type ?? []) state.dirtyLabels.add(label);
  for (const key of state.startBlocked) state.dirty.add(key);
  state.startBlocked.clear();
}

function onHandled(state: State, turn: Turn, event: Extract<SchedulerEvent, { type: "handled" }>): void {
  const { request } = event;
  const handling = state.handling.get(request);
  if (handling === undefined) return;
  onStarted(state, request);
  triedBy(state, request);
  const provider = state.pools.get(handling.pool)?.policy.provider;
  if (provider !== undefined) probed(state, provider, request);
  state.handling.delete(request);
  for (const launch of handling.reserved) wakeFreed(state, state.usage.delete(launch.node) ?? []);
  for (const node of handling.claimed) {
    state.claimed.delete(node);
    state.recheckNodes.add(node);
  }
  for (const node of state.allocated.get(request) ?? []) state.recheckNodes.add(node);
  const entry = state.requests.get(request);
  if (entry?.record.state !== "requested" && entry?.record.state !== "pending")
    return forget(state, turn, request);
  if (event.retryMs !== undefined) {
    const nextTry = turn.steady + event.retryMs;
    // What became of a write without an answer may show only later: as `pending`, and nobody's.
    if (event.unsure === true) state.timetable.set(`unsure ${request}`, nextTry);
    // One that we gave up half-way need not wait for a sweep; one of another launcher's is not asked for twice a minute.
    if (entry.record.state === "pending" && handling.pool === "") return;
    state.timetable.set(`request ${request}`, nextTry);
    setVerdict(state, turn, request, "retry.later", {}, nextTry);
  } else state.recheck.add(request);
}

function onNodeDone(state: State, turn: Turn, node: string, retryMs: number | undefined): void {
  for (const ids of state.makingRoom.values()) ids.delete(node);
  if (retryMs !== undefined && state.nodes.has(node)) {
    state.timetable.set(`busy ${node}`, turn.steady + retryMs);
    return;
  }
  state.busyNodes.delete(node);
  state.recheckNodes.add(node);
}

/** Pending requests that nobody here handles may have lost their handler; whoever gets their lock resets them. */
function resetLost(state: State, turn: Turn): void {
  state.sweepDue = !state.complete;
  if (!state.complete) return;
  for (const request of state.pending) reset(state, turn, request);
}

function reset(state: State, turn: Turn, request: string): void {
  if (state.handling.has(request)) return;
  state.handling.set(request, { pool: "", reserved: [], claimed: [] });
  turn.actions.push({ type: "reset", request });
}

function fireTimers(state: State, turn: Turn): void {
  const { timetable } = state;
  for (let key = timetable.take(turn.steady); key !== undefined; key = timetable.take(turn.steady)) {
    const space = key.indexOf(" ");
    const id = key.slice(space + 1);
    switch (key.slice(0, space)) {
      case "node":
        reconsider(state, turn, id);
        break;
      case "busy":
        state.busyNodes.delete(id);
        state.recheckNodes.add(id);
        break;
      case "request":
        state.recheck.add(id);
        if (state.complete && state.pending.has(id)) reset(state, turn, id);
        break;
      case "unsure":
        if (!state.complete) timetable.set(key, turn.steady + UNSURE_MS);
        else if (state.pending.has(id)) reset(state, turn, id);
        break;
      case "ask":
        if (isQuotaWanted(state, id)) turn.actions.push({ type: "ask-quota", provider: id });
        break;
      case "yield":
        state.recheck.add(id);
        break;
      case "quota":
        dirtyProvider(state, id);
        break;
      case "short":
        state.dirtyLabels.add(id);
        break;
      case "host":
        onHostDue(state, id);
        break;
      case "image":
        onImageDue(state, turn, id);
        break;
      case "offering":
        onOfferingDue(state, turn, id);
        break;
      case "label":
        state.dirtyLabels.add(id);
        break;
    }
  }
}

/** Does what the events left to do, within the budget. True when work is left. */
function settle(state: State, turn: Turn): boolean {
  let budget = BUDGET;
  for (const id of state.recheckNodes) {
    if (budget-- <= 0) return true;
    state.recheckNodes.delete(id);
    reconsider(state, turn, id);
  }
  for (const id of state.recheck) {
    if (budget-- <= 0) return true;
    state.recheck.delete(id);
    const entry = state.requests.get(id);
    if (entry?.record.state === "requested" && !state.handling.has(id)) classify(state, turn, entry);
  }
  if (!state.complete) return false;
  const pools = [...state.dirty].map((key) => state.pools.get(key)).filter((pool) => pool !== undefined);
  pools.sort((a, b) => a.policy.priority - b.policy.priority);
  for (const pool of pools) {
    state.dirty.delete(pool.policy.key);
    state.newcomers.delete(pool.policy.key);
    budget = allocate(state, turn, pool, Math.max(budget, 1));
  }
  for (const key of state.newcomers) {
    state.newcomers.delete(key);
    const pool = state.pools.get(key);
    if (pool !== undefined) budget = lookAtNewcomers(state, turn, pool, Math.max(budget, 1));
  }
  for (const label of state.dirtyLabels) {
    state.dirtyLabels.delete(label);
    keepReady(state, turn, label);
  }
  const { recheck, recheckNodes, dirty, newcomers } = state;
  return recheck.size > 0 || recheckNodes.size > 0 || dirty.size > 0 || newcomers.size > 0;
}
