import { add, type Resources } from "@nodeyard/driver";
import type { State } from "./state.ts";
import type { LocalPool } from "./types.ts";

/**
 * Running sums of resources by key (`pool <key>`, `provider <name>`, `tenant <name>`, `launching <provider>`), where
 * each holder (a node or a reserved launch) adds its amount under several keys.
 */
export class Usage {
  /** A key that nothing is held under has none: tenants come and go. */
  readonly #sums = new Map<string, { holders: number; readonly amount: Record<string, number> }>();
  readonly #holders = new Map<string, { readonly keys: readonly string[]; readonly amount: Resources }>();

  /** Replaces what `holder` uses; returns the keys whose sum has become smaller. */
  set(holder: string, keys: readonly string[], amount: Resources): readonly string[] {
    const before = this.#holders.get(holder);
    this.delete(holder);
    this.#holders.set(holder, { keys, amount });
    for (const key of keys) this.#add(key, amount, 1);
    if (before === undefined) return [];
    for (const name in before.amount) if (before.amount[name]! > (amount[name] ?? 0)) return before.keys;
    return before.keys.filter((key) => !keys.includes(key));
  }

  /** The keys it stood under; undefined when it took nothing. */
  delete(holder: string): readonly string[] | undefined {
    const held = this.#holders.get(holder);
    if (held === undefined) return undefined;
    this.#holders.delete(holder);
    for (const key of held.keys) this.#add(key, held.amount, -1);
    return held.keys;
  }

  /** The sum of a key; empty where nothing is held under it. */
  of(key: string): Resources {
    return this.#sums.get(key)?.amount ?? nothing;
  }

  /** The keys under which a holder stands. */
  keysOf(holder: string): readonly string[] {
    return this.#holders.get(holder)?.keys ?? [];
  }

  /** What a holder takes. */
  held(holder: string): Resources {
    return this.#holders.get(holder)?.amount ?? nothing;
  }

  /** Keys that something is held under. */
  get size(): number {
    return this.#sums.size;
  }

  #add(key: string, amount: Resources, sign: 1 | -1): void {
    const sum = this.#sums.get(key) ?? { holders: 0, amount: {} };
    sum.holders += sign;
    if (sum.holders === 0) return void this.#sums.delete(key);
    this.#sums.set(key, sum);
    for (const name in amount) sum.amount[name] = (sum.amount[name] ?? 0) + sign * amount[name]!;
  }
}

const nothing: Resources = {};

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

/** How many nodes of each pool are being deleted, by any launcher: capacity that comes back without a decision here. */
export class Leaving {
  readonly #pool = new Map<string, string>();
  readonly #count = new Map<string, number>();

  /** `pool` undefined: the node is not on its way out. */
  set(node: string, pool: string | undefined): void {
    const before = this.#pool.get(node);
    if (before === pool) return;
    if (before !== undefined) {
      const left = this.count(before) - 1;
      if (left > 0) this.#count.set(before, left);
      else this.#count.delete(before);
    }
    if (pool === undefined) this.#pool.delete(node);
    else {
      this.#pool.set(node, pool);
      this.#count.set(pool, this.count(pool) + 1);
    }
  }

  has(node: string): boolean {
    return this.#pool.has(node);
  }

  count(pool: string): number {
    return this.#count.get(pool) ?? 0;
  }
}
