import type { Clock } from "@nodeyard/runtime";

/** `left` as it was at `at`, monotonic milliseconds; below 0 while a charge is paid off. */
interface Bucket {
  readonly left: number;
  readonly at: number;
}

/** Calls per second that one client may make for long (docs/design/rest.md, "Decision"). */
const PER_SECOND = 100;
/** Calls that a client may make at once after it was quiet. */
const BURST = 200;
/** The most clients with a bucket; beyond it the least recent one is forgotten, and starts with a full bucket again. */
const MAX_CLIENTS = 1_024;

/** Token buckets, one for each client, in memory: each listener of each process counts for itself. */
export class RateLimit {
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes one call; returns the milliseconds until the next is allowed, 0 when this one is. */
  take(client: string): number {
    const filled = this.#filled(client);
    const allowed = filled >= 1;
    this.#set(client, allowed ? filled - 1 : filled);
    return allowed ? 0 : ((1 - filled) / PER_SECOND) * 1_000;
  }

  /** Takes what an allowed call cost besides, in calls; the next one waits until that is filled again. */
  charge(client: string, cost: number): void {
    this.#set(client, this.#filled(client) - cost);
  }

  /** What the bucket holds now, in calls; a client without one has a full bucket. */
  #filled(client: string): number {
    const now = this.#clock.monotonic();
    const { left, at } = this.#buckets.get(client) ?? { left: BURST, at: now };
    return Math.min(BURST, left + ((now - at) / 1_000) * PER_SECOND);
  }

  /** The newest goes to the end of the map, so that the first is the one that has not called for longest. */
  #set(client: string, left: number): void {
    this.#buckets.delete(client);
    this.#buckets.set(client, { left, at: this.#clock.monotonic() });
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= MAX_CLIENTS) break;
      this.#buckets.delete(oldest);
    }
  }
}
