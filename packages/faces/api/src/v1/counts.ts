import type { ComponentEntry, View } from "@nodeyard/view";
import { type Principal, seesTenant } from "./principal.ts";

/** Counts by state; a caller with limits sees its own nodes and the ready ones that any request may get. */
export function countStates(view: View, ids: Iterable<string>, principal: Principal): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const id of ids) {
    const record = view.nodes.byId.get(id)?.record;
    if (record === undefined) continue;
    const { state, allocatedTo, tenantName } = record;
    const isFree = state === "ready" && allocatedTo === null;
    // A ready node that no request has is of no tenant: any request may get it.
    if (isFree || seesTenant(principal, allocatedTo === null ? null : tenantName))
      counts[state] = (counts[state] ?? 0) + 1;
  }
  return counts;
}

/** Pools of launchers of both kinds, Nodepool's and Nodeyard's. */
export function poolsIn(view: View): readonly ComponentEntry[] {
  return [...view.components.values()].filter(({ kind }) => kind === "pool");
}
