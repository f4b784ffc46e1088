import type { Resources } from "@nodeyard/driver";
import type { NodeFields } from "@nodeyard/model";
import { poolKey } from "@nodeyard/view";
import type { State } from "./state.ts";
import type { SchedulerEvent } from "./types.ts";
import { ANYBODY, ANYWHERE } from "./used.ts";
import { wakeFreed } from "./waiting.ts";

type Known = Partial<NodeFields>;

/** A node or request became unreadable, or is no longer: a node counts wherever it may belong (rule 3). */
export function onUnreadable(
  state: State,
  { kind, id, known }: Extract<SchedulerEvent, { type: "unreadable" }>,
): void {
  if (kind === "request") {
    // Nodes of an unreadable request are kept for it until it can be read or is removed.
    if (known === undefined) state.unreadable.requests.delete(id);
    else state.unreadable.requests.add(id);
    for (const node of state.allocated.get(id) ?? []) state.todo.nodes.add(node);
    return;
  }
  if (known === undefined) {
    state.unreadable.nodes.delete(id);
    state.usage.delete(holder(id));
  } else {
    state.unreadable.nodes.set(id, known);
    count(state, id, known);
  }
  // It happens seldom, and may concern everybody.
  for (const { policy } of state.pools.values()) wakeFreed(state, [`pool ${policy.key}`]);
  wakeFreed(
    state,
    state.waits.names("tenant").map((tenant) => `tenant ${tenant}`),
  );
}

/** Other pools, or other needs of their labels: what nodes take that do not say it is another amount. */
export function recountUnreadable(state: State): void {
  for (const [id, known] of state.unreadable.nodes) count(state, id, known);
}

/** Counts an unreadable node under every key that it may belong to. Repeated for one node it replaces what was counted. */
function count(state: State, id: string, known: Known): void {
  state.usage.set(holder(id), keysOf(known), {
    instances: 1,
    ...(known.resources ?? largestNeed(state, known)),
  });
}

/** A name that no node and no reservation has, since ids of nodes are digits. */
function holder(id: string): string {
  return `unreadable ${id}`;
}

/**
 * An upper bound for a node whose record does not say what it uses. The ledger still counts the node as it was made; with a smaller
 * amount the scheduler would accept requests again and again that the ledger refuses.
 */
function largestNeed(state: State, { provider, pool, resources }: Known): Resources {
  const need: Record<string, number> = {};
  // The record could be read, and names no resources: the node counts as one instance.
  if (resources === null) return need;
  for (const { policy } of state.pools.values()) {
    if (typeof provider === "string" && policy.provider !== provider) continue;
    if (typeof pool === "string" && policy.name !== pool) continue;
    const offered = [...(policy.offerings?.values() ?? [])].flat().map((one) => one.need);
    for (const needs of [...policy.needs.values(), ...offered])
      for (const [name, amount] of Object.entries(needs)) need[name] = Math.max(need[name] ?? 0, amount ?? 0);
  }
  return { ...need, instances: 1 };
}

/** The sums that the node may count in; what is not known counts in the wide ones. */
function keysOf({ provider, pool, tenantName, allocatedTo }: Known): string[] {
  const keys: string[] = [];
  if (typeof provider !== "string") keys.push(ANYWHERE);
  else {
    keys.push(`provider ${provider}`);
    keys.push(typeof pool === "string" ? `pool ${poolKey(provider, pool)}` : `pools of ${provider}`);
  }
  if (allocatedTo === null || tenantName === null) return keys;
  keys.push(tenantName === undefined ? ANYBODY : `tenant ${tenantName}`);
  return keys;
}
