import { abortable, type Clock, sleep } from "@nodeyard/runtime";
import { DriverError } from "../errors.ts";
import { SharedValue } from "./shared-value.ts";

/** What is listed, and how. */
export interface ListWatchOptions<T> {
  readonly clock: Clock;
  /** Lists everything, or what changed since an ISO time, deleted items included. */
  readonly list: (signal: AbortSignal, since?: string) => Promise<readonly T[]>;
  /** For messages: "list of servers". */
  readonly what: string;
  readonly idOf: (item: T) => string;
  /** Whether an item counts as deleted although it is listed. */
  readonly isGone: (item: T) => boolean;
  /** Time of the last change, milliseconds since the epoch by the cloud's clock. Absent: the cloud cannot list changes only. */
  readonly changedAt?: (item: T) => number;
  /** Upper bound of the time from a create until the machine is listed, milliseconds. Default 5,000. */
  readonly settledMs?: number;
  /**
   * Reads one item, for clouds that do this at once and without a limit of rate, such as a server of the installation's own: waits then read
   * what they wait for, and nothing is listed. Their errors are those of the read.
   */
  readonly read?: (id: string, signal: AbortSignal) => Promise<T | undefined>;
  /** Called when a listing failed. It is repeated while a caller waits. */
  readonly onFailure: (error: unknown) => void;
}

/** Pause between two listings for a single waiting caller, milliseconds. With more callers the pause is shorter. */
const ALONE_MS = 2_000;
/** The same when a caller waits for a deletion: the quota that it frees is needed soon. */
const LEAVING_MS = 1_250;
const CROWD_MS = 1_000;
const CROWD = 10;
/** The pause of a crowd is at least this share of its shortest recent wait: after a boot of 30 s, 1.5 s more do not matter, and lists cost calls. */
const CROWD_SHARE = 0.05;
/** Up to this number of items, listing all is as cheap as listing changes, which would report deleted items for another half minute. */
const FEW = 200;
/** What a listing shows of one machine. */
export interface Snapshot<T> {
  /** As listed, or as reported deleted; undefined: not listed. */
  readonly item: T | undefined;
  /** It counts as deleted, although it is listed. */
  readonly departed: boolean;
  /** The listing was complete. A machine that is missing does not exist, or is just being assigned to its host. */
  readonly whole: boolean;
  /** The listing was complete and began late enough after the wait: the machine would be listed if it existed. */
  readonly sure: boolean;
}

/** First and longest pause between two reads of an item, milliseconds. */
const READ_MS = 100;
const SLOWEST_READ_MS = 2_000;

/** What a caller waits for. "rest": a machine that is suspended or woken, which takes another time than a boot. */
export type Wait = "active" | "gone" | "rest";

/** Up to this age (milliseconds) a list serves callers that changed nothing themselves. */
const FRESH_MS = 2_000;
/** After this time (milliseconds) everything is listed again, not only changes. */
const WHOLE_MS = 60_000;
/** Upper bound of the clock differences between the hosts of a cloud, milliseconds. */
const OVERLAP_MS = 30_000;
/** Default of `settledMs`. */
const SETTLED_MS = 5_000;
/** For this share of the shortest recent wait no listing is made. */
const PATIENCE = 0.6;
const REMEMBERED = 20;
const SLOWEST_MS = 15_000;

interface Known<T> {
  readonly items: ReadonlyMap<string, T>;
  /** Items that the last listing reported as deleted. */
  readonly departed: ReadonlyMap<string, T>;
  /** Monotonic time of the request for the list. */
  readonly since: number;
  readonly wholeAt: number;
}

/**
 * One listing for all callers that wait for machines, instead of a poll for each. It lists only while a caller waits, starts when most of
 * the shortest recent wait has passed, and asks only for changes when that is enough.
 */
export class ListWatch<T> {
  readonly #options: ListWatchOptions<T>;
  readonly #shared: SharedValue<ReadonlyMap<string, T>>;
  readonly #waiters = new Map<() => void, Wait>();
  readonly #durations = new Map<Wait, number[]>();
  #known: Known<T> | undefined;
  #looking = false;
  #wakeAt = Number.POSITIVE_INFINITY;
  #sleeping: AbortController | undefined;
  #closed = false;

  constructor(options: ListWatchOptions<T>) {
    this.#options = options;
    this.#shared = new SharedValue({
      clock: options.clock,
      load: (signal) => this.#load(signal),
      what: options.what,
      freshMs: FRESH_MS,
      staleMs: FRESH_MS,
    });
  }

  /** All items. `now`: from a listing that begins after this call. */
  async all(signal: AbortSignal, now: boolean): Promise<ReadonlyMap<string, T>> {
    signal.throwIfAborted();
    if (now) this.#shared.invalidate();
    return this.#shared.get(signal);
  }

  /** All items from a complete listing, for callers that draw conclusions from missing items. */
  async whole(signal: AbortSignal): Promise<ReadonlyMap<string, T>> {
    signal.throwIfAborted();
    this.#known = undefined;
    return this.all(signal, true);
  }

  /**
   * Resolves with the first value that `judge` returns for a listing, or rejects with its error or the signal's reason. Failed listings
   * only cause a delay; the caller's deadline is the limit. `kind` selects the statistics of waits, since a boot takes longer than a
   * deletion.
   */
  async wait<V>(
    kind: Wait,
    id: string,
    judge: (snapshot: Snapshot<T>) => V | undefined,
    signal: AbortSignal,
  ): Promise<V> {
    const { clock, what, read, settledMs = SETTLED_MS } = this.#options;
    if (read !== undefined) return this.#byReads(read, id, judge, signal);
    signal.throwIfAborted();
    if (this.#closed) throw new DriverError("transient", `the ${what} is closed`);
    const started = clock.monotonic();
    const { promise, resolve, reject } = Promise.withResolvers<V>();
    const look = () => {
      const known = this.#known;
      // A list that was requested before the wait began may not contain the server yet.
      if (known === undefined || known.since < started) return;
      try {
        const gone = known.departed.get(id);
        const item = known.items.get(id) ?? gone;
        const whole = known.wholeAt === known.since;
        const sure = whole && known.since - started > settledMs;
        const judged = judge({ item, departed: gone !== undefined, whole, sure });
        if (judged === undefined) return;
        this.#remember(kind, clock.monotonic() - started);
        resolve(judged);
      } catch (error) {
        reject(error);
      }
      this.#waiters.delete(look);
    };
    this.#waiters.set(look, kind);
    this.#wake(started + Math.max(this.#pause(), this.#patience(kind)));
    try {
      return await abortable(promise, signal);
    } finally {
      this.#waiters.delete(look);
    }
  }

  async #byReads<V>(
    read: NonNullable<ListWatchOptions<T>["read"]>,
    id: string,
    judge: (snapshot: Snapshot<T>) => V | undefined,
    signal: AbortSignal,
  ): Promise<V> {
    for (let pause = READ_MS; ; pause = Math.min(SLOWEST_READ_MS, pause * 1.5)) {
      const judged = judge({ item: await read(id, signal), departed: false, whole: true, sure: true });
      if (judged !== undefined) return judged;
      await sleep(this.#options.clock, pause, signal);
    }
  }

  /** Something changed, as the caller knows from elsewhere: lists now if a caller waits. */
  hint(): void {
    if (this.#waiters.size > 0) this.#wake(this.#options.clock.monotonic());
  }

  close(): void {
    this.#closed = true;
    this.#shared.close();
    this.#sleeping?.abort(new Error("closed"));
  }

  /** Lists at `at` or earlier. */
  #wake(at: number): void {
    this.#wakeAt = Math.min(this.#wakeAt, at);
    this.#sleeping?.abort(new Error("sooner"));
    if (!this.#looking) void this.#run();
  }

  async #run(): Promise<void> {
    this.#looking = true;
    const { clock, onFailure } = this.#options;
    let failures = 0;
    while (this.#waiters.size > 0 && !this.#closed) {
      const rest = this.#wakeAt - clock.monotonic();
      if (rest > 0) {
        this.#sleeping = new AbortController();
        await sleep(clock, Math.min(rest, SLOWEST_MS), this.#sleeping.signal).catch(() => {});
        continue;
      }
      this.#shared.invalidate();
      try {
        await this.#shared.get();
        failures = 0;
      } catch (error) {
        failures++;
        onFailure(error);
      }
      for (const look of [...this.#waiters.keys()]) look();
      const pause = Math.min(SLOWEST_MS, this.#pause() * 2 ** Math.min(failures, 4));
      this.#wakeAt = clock.monotonic() + pause;
    }
    this.#looking = false;
    this.#wakeAt = Number.POSITIVE_INFINITY;
  }

  #pause(): number {
    const kinds = new Set(this.#waiters.values());
    const alone = kinds.has("gone") ? LEAVING_MS : ALONE_MS;
    const crowd = Math.min(1, Math.max(0, this.#waiters.size - 1) / (CROWD - 1));
    const shortest = Math.min(...[...kinds].map((kind) => this.#shortest(kind)));
    return Math.min(alone, Math.max(alone - (alone - CROWD_MS) * crowd, shortest * CROWD_SHARE));
  }

  #patience(kind: Wait): number {
    return Math.min(SLOWEST_MS, this.#shortest(kind) * PATIENCE);
  }

  /** The shortest recent wait, milliseconds; 0: none is known. */
  #shortest(kind: Wait): number {
    return Math.min(...(this.#durations.get(kind) ?? [0]));
  }

  #remember(kind: Wait, ms: number): void {
    const durations = this.#durations.get(kind) ?? [];
    this.#durations.set(kind, [...durations.slice(1 - REMEMBERED), ms]);
  }

  /** Loads may overlap. The answer to an older request must not replace the answer to a newer one. */
  async #load(signal: AbortSignal): Promise<ReadonlyMap<string, T>> {
    const { clock, list, idOf, isGone } = this.#options;
    const since = clock.monotonic();
    const base = this.#known;
    const whole = base === undefined || base.items.size <= FEW || since - base.wholeAt > WHOLE_MS;
    const changed = whole ? undefined : this.#changedSince(base.items);
    const listed = await list(signal, changed);
    const items = new Map(changed === undefined ? [] : base!.items);
    const departed = new Map<string, T>();
    for (const item of listed) {
      const [enters, leaves] = isGone(item) ? [departed, items] : [items, departed];
      enters.set(idOf(item), item);
      leaves.delete(idOf(item));
    }
    if (this.#known === undefined || this.#known.since <= since)
      this.#known = { items, departed, since, wholeAt: changed === undefined ? since : base!.wholeAt };
    return items;
  }

  /** Uses the cloud's own times: the newest known change, minus the possible clock difference of its hosts. */
  #changedSince(items: ReadonlyMap<string, T>): string | undefined {
    const { changedAt } = this.#options;
    if (changedAt === undefined) return undefined;
    let newest = Number.NEGATIVE_INFINITY;
    for (const item of items.values()) newest = Math.max(newest, changedAt(item));
    return newest <= 0 ? undefined : new Date(newest - OVERLAP_MS).toISOString();
  }
}
