import { isSuspended, type NodeState } from "@nodeyard/model";
import { type NodeEntry, poolKey } from "@nodeyard/view";
import { freeForMs, isOthersToCheck, OTHERS_CHECK_MS } from "./reuse.ts";
import type { State, Turn } from "./state.ts";

/** Deleted wherever they are found unlocked (docs/contract/launcher.md, "What is deleted unlocked"). */
export const REAPED: ReadonlySet<string> = new Set<NodeState>([
  "used",
  "in-use",
  "building",
  "failed",
  "deleting",
  "deleted",
  "aborted",
]);

/** An `init` record is locked within moments of its creation; one that is not is debris of a crash. */
const INIT_GRACE_MS = 30_000;

/** A requestor holds the lock of a node while it tests it. Without the lock the node is abandoned, unless its requestor reconnects. */
const TESTING_GRACE_MS = 3_600_000;

/** Rule 1: a static host is not offered again until its old user's sessions have surely ended. By the clock that never jumps. */
const IN_USE_GRACE_MS = 60_000;

/** When something is to be done about an unlocked node, steady milliseconds; undefined: never, as it is. */
export function dueAt(state: State, turn: Turn, { id, record }: NodeEntry): number | undefined {
  const since = sinceOf(state, turn, id, record.stateTime);
  if (record.state === "in-use" && outlivesNodes(state, record.provider)) {
    const deserted = state.deserted.get(id) ?? turn.steady;
    state.deserted.set(id, deserted);
    return Math.max(turn.steady, deserted + IN_USE_GRACE_MS);
  }
  if (isOthersToCheck(state, record)) return since + OTHERS_CHECK_MS;
  if (REAPED.has(record.state))
    return state.requests.handled.has(record.allocatedTo ?? "") && record.state === "building"
      ? undefined
      : turn.steady;
  if (record.state === "init") {
    return state.requests.handled.has(record.allocatedTo ?? "")
      ? undefined
      : initDue(state, turn, record, since);
  }
  if (record.state === "testing") return byAge(state, since + TESTING_GRACE_MS);
  if (record.state === "ready" && record.allocatedTo !== null) {
    return isAwaited(state, record.allocatedTo) ? undefined : turn.steady;
  }
  if (record.state === "ready")
    return byAge(state, since + Math.min(maxReadyAge(state, record.type), freeForMs(state, record)));
  if (record.state === "hold") {
    const own = (record.holdExpiration ?? 0) > 0 ? record.holdExpiration! * 1000 : Number.POSITIVE_INFINITY;
    return byAge(state, since + Math.min(own, spareAge(state, record), state.policy.maxHoldAgeMs));
  }
  return undefined;
}

/**
 * Whether a ready node may still be delivered. A request that is put back to `requested` has no nodes. A node that still names it was
 * locked by another client when the nodes were taken back; kept, it would count against the tenant while the request waits for others.
 */
function isAwaited(state: State, request: string): boolean {
  // The request cannot be read, so its nodes are left alone.
  if (state.unreadable.requests.has(request)) return true;
  const entry = state.requests.entry(request);
  return entry !== undefined && (entry.record.state !== "requested" || state.requests.handled.has(request));
}

/** A node that this launcher made and does not work on is garbage at once. One of another launcher may be locked in a moment. */
function initDue(
  state: State,
  turn: Turn,
  { provider, pool, launcher }: NodeEntry["record"],
  since: number,
): number | undefined {
  // Pool ids end with their process.
  const madeHere = state.pools.get(poolKey(provider, pool))?.policy.id === launcher;
  return madeHere ? turn.steady : byAge(state, since + INIT_GRACE_MS);
}

/** What was due of a node is no more. */
export function forgetDue(state: State, id: string): void {
  state.timers.delete("node", id);
  state.deserted.delete(id);
}

/**
 * Steady milliseconds. A node is as old as either clock says: tree time knows of the time before we saw it and of a machine that slept,
 * and the clock that never jumps goes on where tree time was put back. What changed before our eyes is as old as that, whatever time it
 * is to who changed it. A record that gives no time is as old as we have known it: what cannot be read must not make a node look fifty
 * years old.
 */
export function sinceOf(state: State, { now, steady }: Turn, id: string, stateTime: number | null): number {
  const instant = stateTime === null ? null : stateTime * 1000;
  return steady - state.stateTimes.age(id, instant, { now, steady, trusted: state.agesTrusted });
}

/** The node got this state, or a new state time, a moment ago. */
export function noteState(state: State, { now, steady }: Turn, { id, record }: NodeEntry): void {
  const instant = record.stateTime === null ? null : record.stateTime * 1000;
  state.stateTimes.saw(id, instant, { now, steady, trusted: state.agesTrusted });
}

function maxReadyAge(state: State, labels: readonly string[]): number {
  return Math.min(
    Number.POSITIVE_INFINITY,
    ...labels.map((label) => state.policy.labels.get(label)?.maxReadyAgeMs ?? Number.POSITIVE_INFINITY),
  );
}

/** A suspended spare is as old as its image, as one that runs. */
function spareAge(state: State, record: NodeEntry["record"]): number {
  return isSuspended(record) ? maxReadyAge(state, record.type) : Number.POSITIVE_INFINITY;
}

function byAge(state: State, at: number): number | undefined {
  return Number.isFinite(at) && state.agesTrusted ? at : undefined;
}

/** The machine goes on after the node: an old user's sessions could meet the next one's. */
function outlivesNodes(state: State, provider: string | null): boolean {
  return state.policy.providers.get(provider ?? "")?.outlivesNodes === true;
}
