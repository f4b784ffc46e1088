import type { Resources } from "@nodeyard/driver";

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
