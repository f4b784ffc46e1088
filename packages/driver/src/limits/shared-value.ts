import { type Clock, deadline } from "@nodeyard/runtime";
import { asDriverError, DriverError } from "../errors.ts";

/** How a value is loaded, and how old it may be. */
export interface SharedValueOptions<T> {
  readonly clock: Clock;
  /** Loads the value. Its signal aborts at the load's deadline and when the value is closed. */
  readonly load: (signal: AbortSignal) => Promise<T>;
  /** What it is, for messages: "server list". */
  readonly what: string;
  /** Up to this age the value is served as it is, milliseconds; below 0 none is kept, loads are only shared. */
  readonly freshMs: number;
  /** Up to this age it is still served while a new one is loaded, milliseconds. Beyond it callers wait. */
  readonly staleMs: number;
  /** For one load, milliseconds. Default 60,000. */
  readonly loadMs?: number;
}

interface Loading<T> {
  readonly promise: Promise<T>;
  readonly generation: number;
}

/**
 * A value that many ask for and one load answers: lists and quotas of a cloud. At most one load is under way per generation;
 * nobody gets a value older than `staleMs`, nor one whose load began before the last `invalidate`.
 */
export class SharedValue<T> {
  readonly #options: SharedValueOptions<T>;
  readonly #closed = new AbortController();
  #value: { readonly value: T; readonly since: number } | undefined;
  #loading: Loading<T> | undefined;
  #generation = 0;

  constructor(options: SharedValueOptions<T>) {
    this.#options = options;
  }

  /** Rejects with a DriverError, or with the signal's reason; the load goes on for the others. */
  async get(signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const { clock, freshMs, staleMs } = this.#options;
    const age = this.#value === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() - this.#value.since;
    if (this.#value !== undefined && age <= freshMs) return this.#value.value;
    const loading = this.#load();
    if (this.#value !== undefined && age <= staleMs) {
      // Whoever finds the value too old hears of the error; until then it only means an older answer.
      loading.catch(() => {});
      return this.#value.value;
    }
    return signal === undefined ? loading : abortable(loading, signal);
  }

  /** What is known, or being loaded, is out of date: the next `get` loads. Call after a create or delete. */
  invalidate(): void {
    this.#generation++;
    this.#value = undefined;
  }

  /** Ends the load under way; `get` rejects from now on. */
  close(): void {
    this.#closed.abort(new DriverError("transient", `the ${this.#options.what} is closed`));
    this.#value = undefined;
  }

  #load(): Promise<T> {
    if (this.#loading?.generation === this.#generation) return this.#loading.promise;
    const loading: Loading<T> = { promise: this.#run(this.#generation), generation: this.#generation };
    this.#loading = loading;
    const done = () => {
      if (this.#loading === loading) this.#loading = undefined;
    };
    loading.promise.then(done, done);
    return loading.promise;
  }

  async #run(generation: number): Promise<T> {
    const { clock, what, loadMs = 60_000 } = this.#options;
    this.#closed.signal.throwIfAborted();
    const late = () => new DriverError("timeout", `the ${what} took longer than ${loadMs} ms`);
    const limit = deadline(clock, loadMs, late, this.#closed.signal);
    // The value is as old as the question, not as the answer.
    const since = clock.monotonic();
    try {
      const value = await abortable(this.#options.load(limit.signal), limit.signal);
      if (generation === this.#generation) this.#value = { value, since };
      return value;
    } catch (error) {
      throw asDriverError(error, what);
    } finally {
      limit.cancel();
    }
  }
}

/** The outcome of shared `work`, or the signal's reason when it aborts first; the work goes on for the others. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    if (signal.aborted) onAbort();
  });
}
