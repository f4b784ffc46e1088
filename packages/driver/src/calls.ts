import { asDriverError, DriverError } from "./errors.ts";
import { abortable } from "./limits/shared-value.ts";
import type { Step, StepContext } from "./run-steps.ts";

/** Turns what a driver's own code throws into a DriverError; `place` says where, for the message. */
export type MapError = (error: unknown, place: string) => unknown;

/** A provider's calls: each ends with its caller's signal or with `close`, and its errors are DriverErrors from here on. */
export class Calls {
  readonly #name: string;
  readonly #mapError: MapError;
  readonly #closed = new AbortController();

  /** `name`: the provider's. Without `mapError`, what is no DriverError becomes `fatal`. */
  constructor(name: string, mapError: MapError = asDriverError) {
    this.#name = name;
    this.#mapError = mapError;
  }

  /** Aborts when the provider is closed. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Ends what is under way; calls made afterwards reject. */
  close(): void {
    this.#closed.abort(new DriverError("transient", `provider ${this.#name} is closed`));
  }

  async run<T>(place: string, signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const own = this.#both(signal);
    try {
      own.signal.throwIfAborted();
      // A driver that ignores its signal is left behind: what it still makes is found by its tag.
      return await abortable(call(own.signal), own.signal);
    } catch (error) {
      throw this.#thrown(error, place, own.signal);
    } finally {
      own.release();
    }
  }

  /** The steps that `start` takes, under both signals. */
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

  /** A call that was given up ends with its caller's reason, whatever it made of that. */
  #thrown(error: unknown, place: string, signal: AbortSignal): unknown {
    return signal.aborted ? signal.reason : this.#mapError(error, `${this.#name}: ${place}`);
  }

  // Not AbortSignal.any: a signal that lives as long as the provider would gather a trace of every call.
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
