import type { Clock } from "@nodeyard/runtime";
import { DriverError } from "../errors.ts";

/** How fast calls may start, and how many may wait. */
export interface RateLimiterOptions {
  readonly clock: Clock;
  /** At least this long between two starts, milliseconds; 0: no limit but what the server sets (`refused`). */
  readonly intervalMs: number;
  /** Callers that may wait; one more is rejected with `transient`. Default 1,000. */
  readonly waiting?: number;
}

export interface Turn {
  /** Before those that are not: for a read that many wait for. */
  readonly first?: boolean;
}

/** The first refusal of a server that nobody limited asks for this, milliseconds. */
const FIRST_INTERVAL_MS = 50;
const WIDEST_MS = 30_000;
/** Each start that the server takes makes the interval this much shorter, down to what was configured. */
const RECOVERY = 0.95;
/** Below this the interval that a refusal left is forgotten, milliseconds. */
const FORGOTTEN_MS = 5;

/**
 * One start per interval, in order of arrival. The first is free; a caller that gives up leaves its turn to the next.
 * It adapts: `refused` doubles the interval, `accepted` lets it shrink back to what was configured.
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

  /** Callers that wait now. */
  get waiting(): number {
    return this.#first.size + this.#queue.size;
  }

  /** How many more may wait. */
  get free(): number {
    return this.#bound - this.waiting;
  }

  /** Between two starts now, milliseconds. */
  get intervalMs(): number {
    return this.#interval;
  }

  /** The limit was configured anew; what the server asked for on top of the old one stays. */
  configure(intervalMs: number): void {
    const asked = this.#interval > this.#configured;
    this.#configured = intervalMs;
    this.#interval = asked ? Math.max(this.#interval, intervalMs) : intervalMs;
  }

  /** The server had too much: nothing starts for `pauseMs`, and then at half the speed. */
  refused(pauseMs: number): void {
    const now = this.#clock.monotonic();
    // Calls that were under way together are refused together; that is one message, not many.
    if (now - this.#lastRefusal >= this.#interval) {
      this.#interval = Math.min(WIDEST_MS, Math.max(this.#interval * 2, FIRST_INTERVAL_MS));
      this.#lastRefusal = now;
    }
    this.#next = Math.max(this.#next, now + pauseMs);
    this.#stop();
    if (this.waiting > 0) this.#wake();
  }

  /** The server took a call. */
  accepted(): void {
    if (this.#interval <= this.#configured) return;
    const interval = this.#interval * RECOVERY;
    const floor = Math.max(0, this.#configured);
    this.#interval = floor === 0 && interval < FORGOTTEN_MS ? 0 : Math.max(floor, interval);
  }

  /** Resolves when it is the caller's turn; rejects with the signal's reason. */
  async turn(signal?: AbortSignal, { first = false }: Turn = {}): Promise<void> {
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
      // From when it was due, so that timers that fire late do not add up; one interval of lateness is forgiven.
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
