import { add, type Resources } from "@nodeyard/driver";
import type { State } from "./state.ts";
import type { LocalPool } from "./types.ts";

/** Under these keys counts what may be of any pool, and what may be of any tenant. */
export const ANYWHERE = "anywhere";
export const ANYBODY = "anybody";

/** What counts against a pool's limits: its nodes in any state, planned launches, and unreadable nodes that may be of it. */
export function usedOfPool(state: State, { key, provider }: LocalPool): Resources {
  return together(state, `pool ${key}`, `pools of ${provider}`, ANYWHERE);
}

/** The same for a provider's quota. */
export function usedOfProvider(state: State, provider: string): Resources {
  return together(state, `provider ${provider}`, ANYWHERE);
}

/** The same for a tenant: nodes that are allocated to its requests. */
export function usedOfTenant(state: State, tenant: string): Resources {
  return together(state, `tenant ${tenant}`, ANYBODY);
}

/** What the provider may use in total; empty where the pool ignores the quota, so that nothing limits it. */
export function quotaOf(state: State, { provider, ignoresQuota }: LocalPool): Resources {
  return ignoresQuota ? {} : (state.policy.providers.get(provider)?.quota ?? {});
}

/** The same if others used nothing of it: a request for more has no use of waiting. */
export function wholeQuotaOf(state: State, pool: LocalPool): Resources {
  const { limits } = (pool.ignoresQuota ? undefined : state.policy.providers.get(pool.provider)) ?? {};
  return limits ?? quotaOf(state, pool);
}

/** What the nodes of a provider take, launches that are planned here included, and how many are being launched. */
export function providerUse(state: State, provider: string): { used: Resources; launching: number } {
  const launching = state.usage.of(`launching ${provider}`).instances ?? 0;
  return { used: { ...usedOfProvider(state, provider) }, launching };
}

/** The same of a pool, with the requests in its queue. A pool that is not served has none. */
export function poolUse(state: State, key: string): { used: Resources; waiting: number; paused: boolean } {
  const pool = state.pools.get(key);
  const used = pool === undefined ? state.usage.of(`pool ${key}`) : usedOfPool(state, pool.policy);
  return { used: { ...used }, waiting: pool?.queue.size ?? 0, paused: pool?.paused ?? false };
}

/** For verdicts: why more is used than a listing of nodes shows. */
export function unreadableFacts({ unreadable }: State): { readonly unreadable?: number } {
  return unreadable.nodes.size === 0 ? {} : { unreadable: unreadable.nodes.size };
}

/** Adds what unreadable nodes may take; the usual case, without any, costs one look. */
function together(state: State, key: string, ...wider: readonly string[]): Resources {
  const sum = state.usage.of(key);
  if (state.unreadable.nodes.size === 0) return sum;
  return wider.reduce((all, other) => add(all, state.usage.of(other)), sum);
}

/** Key of a zone's sum of nodes. */
export function zoneKey(pool: string, zone: string): string {
  return `zone ${pool} ${zone}`;
}

/**
 * The zone of `open` with the fewest nodes of this pool; the first of several. Nodepool draws a zone at random. The smallest count
 * spreads more evenly, includes planned nodes at once, and keeps the scheduler free of randomness.
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
