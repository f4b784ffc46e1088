import type { Resources } from "@nodeyard/driver";

/**
 * Running sums of resources by key (`pool <key>`, `provider <name>`, `tenant <name>`, `launching <provider>`), where
 * each holder (a node or a reserved launch) adds its amount under several keys.
 */
export class Usage {
  readonly #sums = new Map<string, Record<string, number>>();
  readonly #holders = new Map<string, { readonly keys: readonly string[]; readonly amount: Resources }>();

  /** Sets what `holder` takes, replacing what it took. */
  set(holder: string, keys: readonly string[], amount: Resources): void {
    this.delete(holder);
    this.#holders.set(holder, { keys, amount });
    for (const key of keys) this.#add(key, amount, 1);
  }

  /** The keys it stood under; undefined when it took nothing. */
  delete(holder: string): readonly string[] | undefined {
    const held = this.#holders.get(holder);
    if (held === undefined) return undefined;
    this.#holders.delete(holder);
    for (const key of held.keys) this.#add(key, held.amount, -1);
    return held.keys;
  }

  of(key: string): Resources {
    return this.#sums.get(key) ?? nothing;
  }

  #add(key: string, amount: Resources, sign: 1 | -1): void {
    let sum = this.#sums.get(key);
    if (sum === undefined) {
      sum = {};
      this.#sums.set(key, sum);
    }
    for (const name of Object.keys(amount)) sum[name] = (sum[name] ?? 0) + sign * amount[name]!;
  }
}

const nothing: Resources = {};
