import { isSuspended, reuseOf } from "@nodeyard/model";
import { sinceOf } from "./node-due.ts";
import { retire, take } from "./nodes.ts";
import { spareNumber } from "./spares.ts";
import type { State, Turn } from "./state.ts";
import type { LabelPolicy } from "./types.ts";

/** How many spares of a label are to run, and how many to be suspended. */
export interface Wanted {
  readonly running: number;
  readonly suspended: number;
}

/**
 * What a label is to have now; it is looked at again when that may be something else. Spares that are to be suspended run where, or as long as,
 * they cannot be.
 */
export function wantedSpares(state: State, turn: Turn, label: LabelPolicy): Wanted {
  const spares = sparesOf(state, turn, label);
  if (!label.spares?.suspended) return { running: Math.max(label.minReady, spares), suspended: 0 };
  const missing = Math.max(0, spares - suspendedCount(state, label.name));
  return { running: label.minReady + missing, suspended: spares };
}

/** The number of spares now. */
function sparesOf(state: State, turn: Turn, { name, spares: policy }: LabelPolicy): number {
  const { minReady, timers } = state;
  if (!policy) {
    minReady.decided.delete(name);
    timers.delete("spares", name);
    return 0;
  }
  const [inUse, demand] = [minReady.inUse.get(name)?.size ?? 0, minReady.demand.get(name)];
  const { now, steady } = turn;
  let decided = minReady.decided.get(name);
  // Tree time may go back.
  const holds = decided !== undefined && decided.at <= now && now < decided.until;
  if (!holds || decided?.policy !== policy || decided.inUse !== inUse || decided.demand !== demand) {
    decided = { policy, inUse, demand, at: now, ...spareNumber(policy, { inUse, demand }, now) };
    minReady.decided.set(name, decided);
  }
  if (Number.isFinite(decided!.until)) timers.set("spares", name, steady + decided!.until - now);
  else timers.delete("spares", name);
  return decided!.spares;
}

/** Suspended ones, and those that any launcher is suspending now. */
function suspendedCount({ minReady, nodes }: State, label: string): number {
  let count = minReady.parking.get(label)?.size ?? 0;
  // Those of ours whose record does not say so yet.
  for (const [node, of] of minReady.suspending)
    if (of === label && nodes.get(node)?.record.state === "ready") count++;
  return count;
}

/** Suspends free nodes of a label that need not run, where that is possible. Before `wantedSpares`, which counts them. */
export function suspendFree(state: State, turn: Turn, label: LabelPolicy): void {
  const { name, minReady, spares } = label;
  if (!spares?.suspended || state.timers.get("suspend", name) !== undefined) return;
  const missing = sparesOf(state, turn, label) - suspendedCount(state, name);
  let count = Math.min(state.idle.count(name) - minReady, missing);
  for (const { policy } of state.pools.values()) {
    if (state.policy.providers.get(policy.provider)?.suspends !== true) continue;
    for (const id of [...state.idle.of(policy.key, name)]) {
      if (count <= 0) return;
      const entry = state.nodes.get(id)!;
      // Its hours would pass while it sleeps.
      if ((reuseOf(entry.record)?.times ?? 0) > 0) continue;
      count--;
      state.minReady.suspending.set(id, name);
      take(state, entry);
      turn.actions.push({ type: "suspend", node: id, label: name, version: entry.version });
    }
  }
}

/** Deletes free nodes that are not wanted and have been free for their time. */
export function endSurplus(state: State, turn: Turn, label: LabelPolicy, wanted: Wanted): void {
  if (!label.spares || !state.agesTrusted) return;
  endOldest(state, turn, label, state.idle, wanted.running);
  endOldest(state, turn, label, state.suspended, wanted.suspended);
}

/** Of free nodes beyond the wanted number, those that have been so for their time go, the oldest node first. */
function endOldest(
  state: State,
  turn: Turn,
  { name, spares }: LabelPolicy,
  index: State["idle"],
  wanted: number,
): void {
  let surplus = index.count(name) - wanted;
  if (surplus <= 0) return;
  let next = state.timers.get("spares", name) ?? Number.POSITIVE_INFINITY;
  for (const { policy } of state.pools.values()) {
    if (!policy.launches || !policy.labels.has(name)) continue;
    for (const id of [...index.of(policy.key, name)]) {
      if (surplus <= 0) break;
      const entry = state.nodes.get(id)!;
      const due = sinceOf(state, turn, id, entry.record.stateTime) + spares!.idleMs;
      surplus--;
      if (due > turn.steady) next = Math.min(next, due);
      else
        retire(
          state,
          turn,
          entry,
          `a ${isSuspended(entry.record) ? "suspended " : ""}spare that is not wanted any more`,
        );
    }
  }
  if (Number.isFinite(next)) state.timers.set("spares", name, next);
}
