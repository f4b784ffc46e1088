import { abortable, type Clock, sleep } from "@nodeyard/runtime";
import { asDriverError, DriverError } from "./errors.ts";
import type { Step, StepContext } from "./run-steps.ts";

/** Translates an error of a driver's own code into a DriverError. `place` is for the message. */
export type MapError = (error: unknown, place: string) => unknown;

/** The calls of a provider. Each ends with its caller's signal or with `close`, and rejects with DriverErrors only. */
export class Calls {
  readonly #name: string;
  readonly #mapError: MapError;
  readonly #closed = new AbortController();

  /** `name`: name of the provider. Without `mapError` other errors become `fatal`. */
  constructor(name: string, mapError: MapError = asDriverError) {
    this.#name = name;
    this.#mapError = mapError;
  }

  /** Aborts when the provider is closed. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Ends the calls in progress. Later calls reject. */
  close(): void {
    this.#closed.abort(new DriverError("transient", `provider ${this.#name} is closed`));
  }

  async run<T>(place: string, signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const own = this.#both(signal);
    try {
      own.signal.throwIfAborted();
      // A driver that ignores its signal is abandoned. A machine that it still creates is found by its tag later.
      return await abortable(call(own.signal), own.signal);
    } catch (error) {
      throw this.#thrown(error, place, own.signal);
    } finally {
      own.release();
    }
  }

  /** Runs the steps of `start` under both signals. */
  async *steps<T>(
    place: string,
    context: StepContext,
    start: (context: StepContext) => AsyncGenerator<Step, T, void>,
  ): AsyncGenerator<Step, T, void> {
    const own = this.#both(context.signal);
    try {
      own.signal.throwIfAborted();
      return yield* start({ ...context, signal: own.signal });
    } catch (error) {
      throw this.#thrown(error, place, own.signal);
    } finally {
      own.release();
    }
  }

  /** An aborted call rejects with its caller's reason, whatever error the driver threw. */
  #thrown(error: unknown, place: string, signal: AbortSignal): unknown {
    return signal.aborted ? signal.reason : this.#mapError(error, `${this.#name}: ${place}`);
  }

  // Not AbortSignal.any: the provider's signal lives long and would collect a reference for every call.
  #both(signal: AbortSignal): { readonly signal: AbortSignal; release(): void } {
    const own = new AbortController();
    const parents = [signal, this.#closed.signal];
    const onAbort = () => own.abort(parents.find(({ aborted }) => aborted)?.reason);
    for (const parent of parents) parent.addEventListener("abort", onAbort, { once: true });
    if (parents.some(({ aborted }) => aborted)) onAbort();
    const release = () => {
      for (const parent of parents) parent.removeEventListener("abort", onAbort);
    };
    return { signal: own.signal, release };
  }
}

/** What `look` finds; while that is undefined it is called again after each pause of `ms`. The signal is the only limit. */
export async function polled<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  look: () => Promise<T | undefined>,
): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    await sleep(clock, ms, signal);
  }
}
