import type { Clock } from "@nodeyard/runtime";
import { DriverError } from "../errors.ts";

export interface RateLimiterOptions {
  readonly clock: Clock;
  /** At least this long between two starts, milliseconds; 0: no limit. */
  readonly intervalMs: number;
  /** Callers that may wait; one more is rejected with `transient`. Default 1,000. */
  readonly waiting?: number;
}

/** One start per interval, in order of arrival. The first is free; a caller that gives up leaves its turn to the next. */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #interval: number;
  readonly #bound: number;
  readonly #queue = new Set<() => void>();
  #next = Number.NEGATIVE_INFINITY;
  #timer: { cancel(): void } | undefined;

  constructor(options: RateLimiterOptions) {
    this.#clock = options.clock;
    this.#interval = options.intervalMs;
    this.#bound = options.waiting ?? 1_000;
  }

  /** Callers that wait now. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** Resolves when it is the caller's turn; rejects with the signal's reason. */
  async turn(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const now = this.#clock.monotonic();
    if (this.#interval <= 0) return;
    if (this.#queue.size === 0 && now >= this.#next) {
      this.#next = now + this.#interval;
      return;
    }
    if (this.#queue.size >= this.#bound) {
      throw new DriverError("transient", `${this.#bound} calls wait for the rate limit already`);
    }
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        this.#queue.delete(go);
        if (this.#queue.size === 0) this.#stop();
        reject(signal?.reason);
      };
      const go = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      this.#queue.add(go);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#wake();
    });
  }

  #wake(): void {
    this.#timer ??= this.#clock.setTimer(Math.max(0, this.#next - this.#clock.monotonic()), () => {
      this.#timer = undefined;
      const [first] = this.#queue;
      if (first === undefined) return;
      this.#queue.delete(first);
      this.#next = this.#clock.monotonic() + this.#interval;
      first();
      if (this.#queue.size > 0) this.#wake();
    });
  }

  #stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
