import type { Clock } from "@nodeyard/runtime";

interface Bucket {
  left: number;
  at: number;
}

/** Calls per second that one client may make for long, and at once. */
const PER_SECOND = 100;
const BURST = 200;
/** Clients that are remembered; the one that called longest ago is forgotten, and its bucket is full again. */
const MAX_CLIENTS = 1_024;

/** Token buckets, one for each client. */
export class RateLimit {
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes one call; returns the milliseconds until the next is allowed, 0 when this one is. */
  take(client: string): number {
    const now = this.#clock.monotonic();
    const { left, at } = this.#buckets.get(client) ?? { left: BURST, at: now };
    const filled = Math.min(BURST, left + ((now - at) / 1_000) * PER_SECOND);
    const allowed = filled >= 1;
    this.#buckets.delete(client);
    this.#buckets.set(client, { left: allowed ? filled - 1 : filled, at: now });
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= MAX_CLIENTS) break;
      this.#buckets.delete(oldest);
    }
    return allowed ? 0 : ((1 - filled) / PER_SECOND) * 1_000;
  }
}
