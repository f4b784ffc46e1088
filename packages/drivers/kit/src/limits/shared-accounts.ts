import type { Clock } from "@nodeyard/runtime";

/** State that providers with one credential share. */
export interface Account {
  /** Sets the least time between two calls, milliseconds: the longest of all providers of the account. */
  limit(intervalMs: number): void;
  /** Called when no provider uses the account any more. */
  close(): Promise<void>;
}

/** A provider's use of its account. */
export interface Share<T> {
  readonly account: T;
  /** A second call has no effect. The last provider that releases the account closes it. */
  release(): Promise<void>;
}

interface Entry<T> {
  readonly account: T;
  readonly intervals: Map<symbol, number>;
}

/**
 * Accounts by credential. A cloud treats providers with the same credential as one customer, so they share connections, lists and one rate
 * limit. Accounts are kept per clock, so that two simulations in one process do not share any.
 */
export class SharedAccounts<T extends Account> {
  readonly #byClock = new WeakMap<Clock, Map<string, Entry<T>>>();

  /** `key` identifies the customer, without secrets. `intervalMs` is the provider's own limit; 0: none. */
  share(clock: Clock, key: string, intervalMs: number, open: () => T): Share<T> {
    const all = this.#byClock.get(clock) ?? new Map<string, Entry<T>>();
    this.#byClock.set(clock, all);
    const entry = all.get(key) ?? { account: open(), intervals: new Map() };
    all.set(key, entry);
    const own = Symbol(key);
    entry.intervals.set(own, intervalMs);
    const limit = () => entry.account.limit(Math.max(0, ...entry.intervals.values()));
    limit();
    return {
      account: entry.account,
      async release() {
        if (!entry.intervals.delete(own)) return;
        limit();
        if (entry.intervals.size > 0) return;
        all.delete(key);
        await entry.account.close();
      },
    };
  }
}
