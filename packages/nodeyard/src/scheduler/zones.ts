import type { State } from "./state.ts";
import type { LocalPool } from "./types.ts";

/** Key of a zone's sum of nodes. */
export function zoneKey(pool: string, zone: string): string {
  return `zone ${pool} ${zone}`;
}

/**
 * Of the zones in `open`, the one with the fewest nodes of ours, the first of those that are equal: it spreads as a draw of
 * lots does, but evenly, what is planned counts at once, and it needs no chance in here.
 */
export function leastLoaded(state: State, pool: LocalPool, open: readonly (string | null)[]): string | null {
  let best: string | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const zone of open) {
    if (zone === null) return null;
    const load = state.usage.of(zoneKey(pool.key, zone)).instances ?? 0;
    if (load >= least) continue;
    best = zone;
    least = load;
  }
  return best;
}
