import { abortable, type Clock, deadline, keepSecret } from "@nodeyard/runtime";

/** A value without an end is read again after this, milliseconds: token files and certificates are replaced in place. */
const FRESH_MS = 60_000;
/** One with an end is replaced this long before it by default, so that no call begins with one that is about to end. */
const EARLY_MS = 60_000;
/**
 * A value that came for a refused one, and is refused when it is no older than this, is not read again, milliseconds: without this a cloud that
 * refuses all is flooded.
 */
const NEW_MS = 1_000;
/** Between two readings at least, while the last value still serves, milliseconds. */
const AGAIN_MS = 10_000;

/** What a `RenewedValue` is made of. */
export interface RenewedValueOptions<T> {
  readonly clock: Clock;
  /** Reads it. Its signal aborts after `loadMs` and when the value is closed. */
  readonly load: (signal: AbortSignal) => Promise<T>;
  /** Wall time of its end, milliseconds; null: none is known. */
  readonly endOf: (value: T) => number | null;
  /** The share of its life that is left when it is replaced. Default: a minute. */
  readonly early?: number;
  /** What of it no log and no message may show. */
  readonly secretsOf?: (value: T) => readonly (string | null | undefined)[];
  /** Time limit of one reading, and its error. */
  readonly loadMs: number;
  readonly late: () => Error;
}

/**
 * Credentials that are replaced while the process runs: read again before their end, each minute where none is known, and at once when the
 * far end has refused them. While new ones cannot be had (a file that is being written, a plugin that fails), the last ones serve until
 * their end. Concurrent callers share a reading.
 */
export class RenewedValue<T> {
  readonly #options: RenewedValueOptions<T>;
  readonly #closed = new AbortController();
  #last:
    | { readonly value: T; readonly end: number; readonly since: number; readonly isSecond: boolean }
    | undefined;
  /** The next value comes for a refused one. */
  #isSecond = false;
  /** Monotonic time until which the last one is used without another look. */
  #until = Number.NEGATIVE_INFINITY;
  #reading: Promise<T> | undefined;

  constructor(options: RenewedValueOptions<T>) {
    this.#options = options;
  }

  /** The value that was read last, without a look at its age. */
  get last(): T | undefined {
    return this.#last?.value;
  }

  /** Rejects with the error of `load` when there is none to use. A caller that gives up ends no reading. */
  get(signal?: AbortSignal): Promise<T> {
    return signal === undefined ? this.#get() : abortable(this.#get(), signal);
  }

  #get(): Promise<T> {
    const { clock } = this.#options;
    if (this.#last !== undefined && clock.monotonic() < this.#until && clock.now() < this.#last.end)
      return Promise.resolve(this.#last.value);
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** The far end refused the value, or what it stands for does not fit: the next `get` reads it again. */
  refused(): void {
    this.#until = Number.NEGATIVE_INFINITY;
  }

  /** The same for this value, which does not serve any more. False: another one would be refused as well, as this one was at once, which came for a refused one. */
  replace(value: T): boolean {
    // Another caller has reported it already.
    if (this.#last?.value !== value) return true;
    const { since, isSecond } = this.#last;
    if (isSecond && this.#options.clock.monotonic() - since < NEW_MS) return false;
    this.#last = undefined;
    this.#isSecond = true;
    return true;
  }

  /** Ends a reading under way. */
  close(reason: Error): void {
    this.#closed.abort(reason);
  }

  async #read(): Promise<T> {
    const { clock, load, endOf, early, secretsOf = () => [], loadMs, late } = this.#options;
    // Not a caller's signal: it would end the reading for all who wait for it.
    using limit = deadline(clock, loadMs, late, this.#closed.signal);
    try {
      const value = await abortable(load(limit.signal), limit.signal);
      for (const secret of secretsOf(value)) if (secret) keepSecret(secret);
      const end = endOf(value);
      const [since, isSecond] = [clock.monotonic(), this.#isSecond];
      this.#last = { value, end: end ?? Number.POSITIVE_INFINITY, since, isSecond };
      this.#isSecond = false;
      const left = (end ?? 0) - clock.now();
      const earlyMs = early === undefined ? EARLY_MS : left * early;
      const ms = end === null ? FRESH_MS : Math.max(AGAIN_MS, left - earlyMs);
      this.#until = clock.monotonic() + ms;
      return value;
    } catch (error) {
      if (this.#last === undefined || clock.now() >= this.#last.end) throw error;
      this.#until = clock.monotonic() + AGAIN_MS;
      return this.#last.value;
    }
  }
}
