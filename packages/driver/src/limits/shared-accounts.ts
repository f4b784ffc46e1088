import type { Clock } from "@nodeyard/runtime";

/** What providers with one credential have in common. */
export interface Account {
  /** At least this long between two calls, milliseconds: the strictest that any of the providers has. */
  limit(intervalMs: number): void;
  /** Nobody uses it any more. */
  close(): Promise<void>;
}

/** A provider's hold on its account. */
export interface Share<T> {
  readonly account: T;
  /** Twice: nothing. The last provider that lets go closes the account. */
  release(): Promise<void>;
}

interface Held<T> {
  readonly account: T;
  readonly intervals: Map<symbol, number>;
}

/**
 * Accounts by credential. To the cloud, providers with the same one are one customer: they share connections, lists and one rate limit.
 * Kept per clock, so that two simulations in one process never meet.
 */
export class SharedAccounts<T extends Account> {
  readonly #byClock = new WeakMap<Clock, Map<string, Held<T>>>();

  /** `key` names the customer, without secrets. `intervalMs` is the provider's own limit; 0: none. */
  share(clock: Clock, key: string, intervalMs: number, open: () => T): Share<T> {
    const all = this.#byClock.get(clock) ?? new Map<string, Held<T>>();
    this.#byClock.set(clock, all);
    const held = all.get(key) ?? { account: open(), intervals: new Map() };
    all.set(key, held);
    const own = Symbol(key);
    held.intervals.set(own, intervalMs);
    const limit = () => held.account.limit(Math.max(0, ...held.intervals.values()));
    limit();
    return {
      account: held.account,
      async release() {
        if (!held.intervals.delete(own)) return;
        limit();
        if (held.intervals.size > 0) return;
        all.delete(key);
        await held.account.close();
      },
    };
  }
}
