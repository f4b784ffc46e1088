import { Aborted } from "../errors.ts";
import type { Clock, OpOptions } from "../types.ts";

/** Twelve days. Timers of more than twice that overflow in Node and fire at once. */
const LONGEST_TIMER_MS = 2 ** 30;

/** One deadline and one signal for a whole sequence of operations and waits. */
export class Limit {
  readonly ms: number;
  readonly #signal: AbortSignal | undefined;
  readonly #clock: Clock;
  readonly #end: number;
  readonly #late: () => Error;
  readonly #path: string;

  /** `ms` may be Infinity: then only the signal ends it. `late` makes the error for a deadline that has passed. */
  constructor(clock: Clock, ms: number, signal: AbortSignal | undefined, path: string, late: () => Error) {
    this.ms = ms;
    this.#clock = clock;
    this.#signal = signal;
    this.#end = clock.monotonic() + ms;
    this.#late = late;
    this.#path = path;
  }

  /** Options for the next operation. Throws when nothing is left. */
  options(): OpOptions {
    const left = this.#left();
    return {
      deadlineMs: Math.min(left, LONGEST_TIMER_MS),
      ...(this.#signal === undefined ? {} : { signal: this.#signal }),
    };
  }

  /** Waits until `wake` or `fail` is called, at most as long as the limit allows; rejects when the limit comes first. */
  wait(begin: (wake: () => void, fail: (error: Error) => void) => void): Promise<void> {
    const left = this.#left();
    const signal = this.#signal;
    return new Promise((resolve, reject) => {
      const clear = () => {
        timer?.cancel();
        signal?.removeEventListener("abort", onAbort);
      };
      const fail = (error: Error) => {
        clear();
        reject(error);
      };
      const onAbort = () => fail(this.#aborted());
      const timer =
        left < LONGEST_TIMER_MS ? this.#clock.setTimer(left, () => fail(this.#late())) : undefined;
      signal?.addEventListener("abort", onAbort, { once: true });
      const wake = () => {
        clear();
        resolve();
      };
      begin(wake, fail);
    });
  }

  #left(): number {
    if (this.#signal?.aborted) throw this.#aborted();
    const left = this.#end - this.#clock.monotonic();
    if (left <= 0) throw this.#late();
    return left;
  }

  #aborted(): Error {
    return new Aborted({ op: "lock", path: this.#path, cause: this.#signal?.reason });
  }
}
