import { type NodeRecord, reuseOf } from "@nodeyard/model";
import { imageOf } from "./images.ts";
import { isClosed } from "./offerings.ts";
import { isElsewhere } from "./place.ts";
import { endSurplus, suspendFree, wantedSpares } from "./spare-nodes.ts";
import type { State, Turn } from "./state.ts";
import { usedOfPool } from "./used.ts";

/** Requests for one label written at once, at most: the rest follows when these are under way. */
const BATCH = 32;

/** How much longer each launcher waits than the one before it, milliseconds, and how many of them at most. */
const TURN_MS = 10_000;
const TURNS = 6;

/**
 * Requests the nodes that a label lacks of its `min-ready` and spares, and ends spares that are not wanted any more. Idle nodes and open min-ready
 * requests of all launchers count, so that two launchers do not ask for the same nodes (docs/contract/launcher.md, "min-ready").
 */
export function keepReady(state: State, turn: Turn, label: string): void {
  const policy = state.policy.labels.get(label);
  state.minReady.heldUp.delete(label);
  if (policy === undefined || !state.complete) return;
  suspendFree(state, turn, policy);
  const wanted = wantedSpares(state, turn, policy);
  endSurplus(state, turn, policy, wanted);
  if (wanted.running <= 0) return isNotShort(state, label);
  if (state.minReady.asking.has(label) || state.timers.get("label", label) !== undefined) return;
  // While no pool can launch the label, no launcher starts to count the time for which the label is short. Otherwise all of them would
  // ask in the moment in which launching works again.
  if (!servable(state, turn.steady, label)) {
    state.minReady.heldUp.add(label);
    return isNotShort(state, label);
  }
  const open = state.minReady.open.get(label)?.size ?? 0;
  const idle = state.idle.count(label) + aboutToBeFree(state, label) + aboutToBeGiven(state, label);
  const missing = wanted.running - open - idle;
  if (missing <= 0) return isNotShort(state, label);
  if (!isOurTurn(state, turn, label)) return;
  state.minReady.asking.add(label);
  turn.actions.push({ type: "min-ready", label, count: Math.min(missing, BATCH) });
}

function isNotShort(state: State, label: string): void {
  state.minReady.short.delete(label);
  state.timers.delete("short", label);
}

/**
 * Of several launchers with a label, the one whose pool registered first asks at once. The others follow in turn, each only when the
 * label is still short by then. So nodes are not requested twice, and a launcher that is dead, stuck or a Python one delays the others
 * by a few seconds only.
 */
function isOurTurn(state: State, turn: Turn, label: string): boolean {
  const own = new Set([...state.pools.values()].map(({ policy }) => policy.id));
  const before = Math.min(TURNS, state.registry.rankOf(label, own));
  const since = state.minReady.short.get(label) ?? turn.steady;
  state.minReady.short.set(label, since);
  const due = since + before * TURN_MS;
  if (turn.steady >= due) return true;
  state.timers.set("short", label, due);
  return false;
}

/** A node is freed and its request deleted in one commit, but the request may be seen to go first. */
function aboutToBeFree(state: State, label: string): number {
  let count = 0;
  for (const id of state.minReady.stock.get(label) ?? []) {
    const record = state.nodes.get(id)?.record;
    const request = record?.allocatedTo ?? null;
    if (record !== undefined && isElsewhere(record, state.policy.providers.get(record.provider ?? "")?.place))
      continue;
    const promised = request !== null && state.requests.entry(request) !== undefined;
    // Busy with a request: being freed; without: being deleted.
    const going = request === null && state.busyNodes.has(id);
    if (!promised && !going && !state.idle.has(id) && !state.requests.claims.has(id)) count++;
  }
  return count;
}

/**
 * Idle nodes of requests whose lock we may not get: every launcher plans for a request that it sees, and of all but the one that
 * gets it the nodes stay idle.
 */
function aboutToBeGiven(state: State, label: string): number {
  let count = 0;
  for (const request of state.requests.starting)
    for (const id of state.requests.of(request)?.handling?.claimed ?? [])
      if (isSpare(state.nodes.get(id)?.record, label)) count++;
  return count;
}

function isSpare(record: NodeRecord | undefined, label: string): boolean {
  return record?.type.includes(label) === true && reuseOf(record)?.only == null;
}

/** Some pool of ours launches this label and is not held up by its limits. */
function servable(state: State, steady: number, label: string): boolean {
  for (const { policy, blocked } of state.pools.values()) {
    if (
      !policy.launches ||
      !policy.labels.has(label) ||
      policy.unavailable.has(label) ||
      imageOf(state, policy, label).kind !== "ready" ||
      isClosed(state, steady, policy, label) ||
      blocked !== undefined
    )
      continue;
    if ((policy.limits.instances ?? Number.POSITIVE_INFINITY) > (usedOfPool(state, policy).instances ?? 0))
      return true;
  }
  return false;
}
