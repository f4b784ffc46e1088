/** Tries of one thing that failed in a row. `since`: steady milliseconds, of the first. */
export interface Tries {
  readonly failed: number;
  readonly since: number;
}

/** Keys that are remembered, at most. When there are more, all start again with short pauses. */
const REMEMBERED = 50_000;

/** Failures in a row by request, node or label, as far as this process knows. Pauses before the next try grow with them. */
export class FailedTries {
  readonly #byKey = new Map<string, Tries>();

  /** Counts one more, at `now`. Returns all of the row. */
  add(key: string, now: number): Tries {
    const before = this.#byKey.get(key);
    const tries = { failed: (before?.failed ?? 0) + 1, since: before?.since ?? now };
    if (this.#byKey.size >= REMEMBERED) this.#byKey.clear();
    this.#byKey.set(key, tries);
    return tries;
  }

  /** Failures of the row so far; 0 for a key of which nothing failed. */
  count(key: string): number {
    return this.#byKey.get(key)?.failed ?? 0;
  }

  /** The row is over: a try succeeded, or nothing is tried any more. */
  end(key: string): void {
    this.#byKey.delete(key);
  }

  /** Ends the rows of all other keys. */
  keep(isKept: (key: string) => boolean): void {
    for (const key of this.#byKey.keys()) if (!isKept(key)) this.#byKey.delete(key);
  }
}
