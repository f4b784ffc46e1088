import type { Clock } from "@nodeyard/runtime";

/** An object of its own, so that a timer recognizes its entry after the key was made anew. */
interface Entry<T> {
  readonly value: Promise<T>;
}

/**
 * Answers that are valid for a moment. Calls during that time share one answer, also while it is being made, so that many pages
 * cost as much as one. Holds at most `capacity` answers, the ones requested last, and none beyond its time, because an answer may
 * be large.
 */
export class ShortCache<T> {
  readonly #clock: Clock;
  /** From when the answer is there, not from when it was asked for. */
  readonly #goodMs: number;
  readonly #capacity: number;
  readonly #entries = new Map<string, Entry<T>>();

  constructor(clock: Clock, goodMs: number, capacity: number) {
    this.#clock = clock;
    this.#goodMs = goodMs;
    this.#capacity = capacity;
  }

  /** The answer for a key. Rejects with what `make` rejects with, for all who wait; a rejection is not kept. */
  get(key: string, make: () => Promise<T>): Promise<T> {
    const known = this.#entries.get(key);
    if (known !== undefined) return known.value;
    const entry: Entry<T> = { value: make() };
    const forget = () => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    };
    entry.value.then(
      () => void this.#clock.setTimer(this.#goodMs, forget, { background: true }),
      () => forget(),
    );
    this.#entries.set(key, entry);
    // The first key is the oldest.
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#capacity) break;
      this.#entries.delete(oldest);
    }
    return entry.value;
  }

  get size(): number {
    return this.#entries.size;
  }
}
