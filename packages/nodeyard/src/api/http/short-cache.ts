import type { Clock } from "@nodeyard/runtime";

interface Entry<T> {
  /** Monotonic milliseconds at which it was computed; infinite while it is. */
  at: number;
  readonly value: Promise<T>;
}

/**
 * Answers that stay good for a moment: whoever asks meanwhile gets the same one, and waits for the one that is being made. Holds no
 * more than `capacity` of them, the latest asked for.
 */
export class ShortCache<T> {
  readonly #clock: Clock;
  readonly #goodMs: number;
  readonly #capacity: number;
  readonly #entries = new Map<string, Entry<T>>();

  constructor(clock: Clock, goodMs: number, capacity: number) {
    this.#clock = clock;
    this.#goodMs = goodMs;
    this.#capacity = capacity;
  }

  /** Rejects with what `make` rejects with, which is not kept. */
  get(key: string, make: () => Promise<T>): Promise<T> {
    const known = this.#entries.get(key);
    if (known !== undefined && this.#clock.monotonic() - known.at < this.#goodMs) return known.value;
    const entry: Entry<T> = { at: Number.POSITIVE_INFINITY, value: make() };
    entry.value.then(
      () => {
        entry.at = this.#clock.monotonic();
      },
      () => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key);
      },
    );
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    // The first key is the one that was made longest ago.
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
