import type { NodeFields } from "@nodeyard/model";
import { poolKey } from "../view/index.ts";
import { wakeFreed } from "./nodes.ts";
import type { State } from "./state.ts";
import type { SchedulerEvent } from "./types.ts";
import { ANYBODY, ANYWHERE } from "./used.ts";

/** A node or request became unreadable, or is no longer: a node counts wherever it may belong (rule 3). */
export function onUnreadable(
  state: State,
  { kind, id, known }: Extract<SchedulerEvent, { type: "unreadable" }>,
): void {
  const ids = kind === "node" ? state.unreadable.nodes : state.unreadable.requests;
  if (known === undefined) ids.delete(id);
  else ids.add(id);
  if (kind === "request") {
    for (const node of state.allocated.get(id) ?? []) state.recheckNodes.add(node);
    return;
  }
  const holder = `unreadable ${id}`;
  if (known === undefined) state.usage.delete(holder);
  else state.usage.set(holder, keysOf(known), { instances: 1, ...known.resources });
  // It happens seldom, and may concern everybody.
  for (const { policy } of state.pools.values()) wakeFreed(state, [`pool ${policy.key}`]);
  wakeFreed(
    state,
    [...state.tenantWaiting.keys()].map((tenant) => `tenant ${tenant}`),
  );
}

function keysOf({ provider, pool, tenantName, allocatedTo }: Partial<NodeFields>): string[] {
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
