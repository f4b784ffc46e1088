import type { Clock } from "@nodeyard/runtime";
import { DriverError } from "../errors.ts";

/** How often calls may start, and how many may wait. */
export interface RateLimiterOptions {
  readonly clock: Clock;
  /** Least time between two starts, milliseconds. 0: no limit except what the server demands (`refused`). */
  readonly intervalMs: number;
  /** Most callers that may wait; further ones are rejected with `transient`. Default 1,000. */
  readonly waiting?: number;
}

/** Interval after the first refusal of a server without a configured limit, milliseconds. */
const FIRST_INTERVAL_MS = 50;
const WIDEST_MS = 30_000;
/** Factor by which each accepted call shortens the interval, down to the configured one. */
const RECOVERY = 0.95;
/** An interval below this that remains from a refusal is set to 0, milliseconds. */
const FORGOTTEN_MS = 5;

/**
 * Lets one call start per interval, in order of arrival. The first starts at once. A caller that aborts passes its turn to the next.
 * The limiter adapts: `refused` doubles the interval, `accepted` shortens it again down to the configured one.
 */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #bound: number;
  readonly #first = new Set<() => void>();
  readonly #queue = new Set<() => void>();
  #configured: number;
  #interval: number;
  #next = Number.NEGATIVE_INFINITY;
  #lastRefusal = Number.NEGATIVE_INFINITY;
  #timer: { cancel(): void } | undefined;

  constructor(options: RateLimiterOptions) {
    this.#clock = options.clock;
    this.#configured = options.intervalMs;
    this.#interval = options.intervalMs;
    this.#bound = options.waiting ?? 1_000;
  }

  /** Number of waiting callers. */
  get waiting(): number {
    return this.#first.size + this.#queue.size;
  }

  /** How many more callers may wait. */
  get free(): number {
    return this.#bound - this.waiting;
  }

  /** The present interval between two starts, milliseconds. */
  get intervalMs(): number {
    return this.#interval;
  }

  /** Sets a new configured limit. A longer interval that the server demanded stays. */
  configure(intervalMs: number): void {
    const asked = this.#interval > this.#configured;
    this.#configured = intervalMs;
    this.#interval = asked ? Math.max(this.#interval, intervalMs) : intervalMs;
  }

  /** The server refused a call because of too many calls: nothing starts for `pauseMs`, then at half the rate. */
  refused(pauseMs: number): void {
    const now = this.#clock.monotonic();
    // Calls that were in flight together are refused together. They count as one refusal.
    if (now - this.#lastRefusal >= this.#interval) {
      this.#interval = Math.min(WIDEST_MS, Math.max(this.#interval * 2, FIRST_INTERVAL_MS));
      this.#lastRefusal = now;
    }
    this.#next = Math.max(this.#next, now + pauseMs);
    this.#stop();
    if (this.waiting > 0) this.#wake();
  }

  /** The server accepted a call. */
  accepted(): void {
    if (this.#interval <= this.#configured) return;
    const interval = this.#interval * RECOVERY;
    const floor = Math.max(0, this.#configured);
    this.#interval = floor === 0 && interval < FORGOTTEN_MS ? 0 : Math.max(floor, interval);
  }

  /** Resolves when the caller may start; rejects with the signal's reason. `first`: before others, for a read that many wait for. */
  async turn(signal?: AbortSignal, { first = false }: { readonly first?: boolean } = {}): Promise<void> {
    signal?.throwIfAborted();
    const now = this.#clock.monotonic();
    if (this.waiting === 0 && now >= this.#next) {
      this.#next = now + this.#interval;
      return;
    }
    if (this.waiting >= this.#bound) {
      throw new DriverError("transient", `${this.#bound} calls wait for the rate limit already`);
    }
    const queue = first ? this.#first : this.#queue;
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        queue.delete(go);
        if (this.waiting === 0) this.#stop();
        reject(signal?.reason);
      };
      const go = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      queue.add(go);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#wake();
    });
  }

  #wake(): void {
    this.#timer ??= this.#clock.setTimer(Math.max(0, this.#next - this.#clock.monotonic()), () => {
      this.#timer = undefined;
      const queue = this.#first.size > 0 ? this.#first : this.#queue;
      const [caller] = queue;
      if (caller === undefined) return;
      queue.delete(caller);
      // Counts from the time when the turn was due, so that late timers do not add up. At most one interval of delay is made up for.
      const now = this.#clock.monotonic();
      this.#next = Math.max(this.#next, now - this.#interval) + this.#interval;
      caller();
      if (this.waiting > 0) this.#wake();
    });
  }

  #stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

/** Calls that read may start this many times as often as those that change something. */
const READS = 10;

/** The rate limits of one credential at a cloud that counts changes apart from reads. */
export class CallRates {
  readonly writes: RateLimiter;
  readonly reads: RateLimiter;
  /** For data of images and the like: limited only by what the cloud refuses. */
  readonly data: RateLimiter;

  constructor(clock: Clock) {
    const unlimited = () => new RateLimiter({ clock, intervalMs: 0 });
    [this.writes, this.reads, this.data] = [unlimited(), unlimited(), unlimited()];
  }

  /** Sets the milliseconds between two calls that change something; 0: no limit. */
  limit(intervalMs: number): void {
    this.writes.configure(intervalMs);
    this.reads.configure(intervalMs / READS);
  }
}
