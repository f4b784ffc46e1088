import { DriverError, type Step, type StepContext } from "@nodeyard/driver";
import { mapError } from "./errors.ts";

/** Calls that end with their caller's signal or with `close`; errors are DriverErrors from here on. */
export class Calls {
  readonly #name: string;
  readonly #closed = new AbortController();

  constructor(name: string) {
    this.#name = name;
  }

  close(): void {
    this.#closed.abort(new DriverError("transient", `provider ${this.#name} is closed`));
  }

  async run<T>(place: string, signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const own = this.#both(signal);
    try {
      own.signal.throwIfAborted();
      return await call(own.signal);
    } catch (error) {
      throw this.#mapped(error, place, own.signal);
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
      throw this.#mapped(error, place, own.signal);
    } finally {
      own.release();
    }
  }

  #mapped(error: unknown, place: string, signal: AbortSignal): unknown {
    return signal.aborted ? signal.reason : mapError(error, `${this.#name}: ${place}`);
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
