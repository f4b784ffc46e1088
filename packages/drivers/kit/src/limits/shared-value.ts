import { abortable, type Clock, deadline } from "@nodeyard/runtime";
import { asDriverError, DriverError } from "../errors.ts";

/** How a value is loaded, and how old it may be. */
export interface SharedValueOptions<T> {
  readonly clock: Clock;
  /** Loads the value. Its signal aborts at the load's deadline and when the value is closed. */
  readonly load: (signal: AbortSignal) => Promise<T>;
  /** Name of the value for messages: "server list". */
  readonly what: string;
  /** Up to this age (milliseconds) the value is returned as it is. Below 0 values are not kept, and only loads are shared. */
  readonly freshMs: number;
  /** Up to this age (milliseconds) the value is still returned while a new one is loaded. Beyond it callers wait. Default: `freshMs`. */
  readonly staleMs?: number;
  /** Time limit of one load, milliseconds. Default 60,000. */
  readonly loadMs?: number;
}

interface Loading<T> {
  readonly promise: Promise<T>;
  readonly generation: number;
}

/**
 * A value that many callers need and one load provides: lists and quotas of a cloud. At most one load per generation is in progress. No
 * caller gets a value that is older than `staleMs` or whose load began before the last `invalidate`.
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

  /** Rejects with a DriverError, or with the signal's reason; the load continues for other callers. */
  async get(signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const { clock, freshMs, staleMs = freshMs } = this.#options;
    const age = this.#value === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() - this.#value.since;
    if (this.#value !== undefined && age <= freshMs) return this.#value.value;
    const loading = this.#load();
    if (this.#value !== undefined && age <= staleMs) {
      // The error is reported to the caller that finds the value too old. Until then it only means an older value.
      loading.catch(() => {});
      return this.#value.value;
    }
    return signal === undefined ? loading : abortable(loading, signal);
  }

  /** Discards the value and the load in progress: the next `get` loads again. Call it after a create or delete. */
  invalidate(): void {
    this.#generation++;
    this.#value = undefined;
  }

  /** Ends the load in progress. Later calls of `get` reject. */
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
    using limit = deadline(clock, loadMs, late, this.#closed.signal);
    // The age counts from the request, because the answer may describe the state at that time.
    const since = clock.monotonic();
    try {
      const value = await abortable(this.#options.load(limit.signal), limit.signal);
      if (generation === this.#generation) this.#value = { value, since };
      return value;
    } catch (error) {
      throw asDriverError(error, what);
    }
  }
}

/** Most keys whose values are kept: more than a configuration has. */
const MOST_KEYS = 2_000;

/** Shared values by key: lists, and what is looked up for each type, image or name that a configuration has. */
export class SharedValues<T = unknown> {
  readonly #clock: Clock;
  readonly #known = new Map<string, SharedValue<T>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `what` is the key, and names the value in messages. `how` is that of the first call. */
  get<V extends T>(
    what: string,
    how: Omit<SharedValueOptions<V>, "clock" | "what">,
    signal: AbortSignal,
  ): Promise<V> {
    let shared = this.#known.get(what);
    if (shared === undefined) {
      if (this.#known.size >= MOST_KEYS) this.#known.clear();
      shared = new SharedValue<T>({ clock: this.#clock, what, ...how });
      this.#known.set(what, shared);
    }
    return shared.get(signal) as Promise<V>;
  }

  invalidate(): void {
    for (const shared of this.#known.values()) shared.invalidate();
  }

  close(): void {
    for (const shared of this.#known.values()) shared.close();
  }
}
