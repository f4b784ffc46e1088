import { type Clock, sleep } from "@nodeyard/runtime";
import { DriverError } from "../errors.ts";
import { SharedValue } from "./shared-value.ts";

/** What is listed, and how. */
export interface ListWatchOptions<T> {
  readonly clock: Clock;
  /** Everything, or what changed since an ISO time, what is gone included. */
  readonly list: (signal: AbortSignal, since?: string) => Promise<readonly T[]>;
  /** For messages: "list of servers". */
  readonly what: string;
  readonly idOf: (item: T) => string;
  /** Whether it counts as deleted although it is listed. */
  readonly isGone: (item: T) => boolean;
  /** When it changed, milliseconds since the epoch by the cloud's clock. Absent: the cloud cannot list changes alone. */
  readonly changedAt?: (item: T) => number;
  /** A listing failed; it is tried again while anybody waits. */
  readonly onFailure: (error: unknown) => void;
}

/** Milliseconds between two looks, for one who waits; more of them make it worth to look more often. */
const ALONE_MS = 2_000;
/** Whose quota others wait for is looked at sooner. */
const LEAVING_MS = 1_250;
const CROWD_MS = 1_000;
const CROWD = 10;
/** So many are listed at once as cheaply as what changed of them, which tells the deleted ones for half a minute more. */
const FEW = 200;
/** What a look found of one machine. */
export interface Snapshot<T> {
  /** As listed, or reported as deleted; undefined: not listed. */
  readonly item: T | undefined;
  /** All were listed, not only what changed: what is missing is not there, or is just handed to its host. */
  readonly whole: boolean;
  /** All were listed, and not too soon after the wait began: it should be listed, were it there. */
  readonly sure: boolean;
}

/** What is waited for. */
export type Wait = "active" | "gone";

/** A list this old still says what there is, for those who made no change of their own. */
const FRESH_MS = 2_000;
/** After this long everything is listed, not only what changed. */
const WHOLE_MS = 60_000;
/** Hosts of a cloud disagree about the time by less than this, milliseconds. */
const OVERLAP_MS = 30_000;
/** What was made is listed after this long, milliseconds. */
const SETTLED_MS = 5_000;
/** The share of the shortest recent wait that nobody looks into. */
const PATIENCE = 0.6;
const REMEMBERED = 20;
const SLOWEST_MS = 15_000;

interface Known<T> {
  readonly items: ReadonlyMap<string, T>;
  /** Those that the last listing reported as deleted. */
  readonly departed: ReadonlyMap<string, T>;
  /** Monotonic time at which it was asked for. */
  readonly since: number;
  readonly wholeAt: number;
}

/**
 * One listing for all who wait for machines, instead of one poll for each. It looks only while somebody waits, not before the
 * shortest of the recent waits has nearly passed, and asks for what changed where that is enough.
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

  /** Everything that there is. `now`: as a listing shows them that began after this call. */
  async all(signal: AbortSignal, now: boolean): Promise<ReadonlyMap<string, T>> {
    signal.throwIfAborted();
    if (now) this.#shared.invalidate();
    return this.#shared.get(signal);
  }

  /** The same by a listing of all, whatever is known: for those who conclude something from what is missing. */
  async whole(signal: AbortSignal): Promise<ReadonlyMap<string, T>> {
    signal.throwIfAborted();
    this.#known = undefined;
    return this.all(signal, true);
  }

  /**
   * Resolves with the first thing that `judge` makes of what a look found, or rejects with what it throws, or with the
   * signal's reason. Failed listings only delay: the caller's deadline is the limit. `kind` names what is waited for, since a
   * boot takes longer than a deletion.
   */
  wait<V>(
    kind: Wait,
    id: string,
    judge: (snapshot: Snapshot<T>) => V | undefined,
    signal: AbortSignal,
  ): Promise<V> {
    return new Promise((resolve, reject) => {
      const started = this.#options.clock.monotonic();
      const end = () => {
        this.#waiters.delete(look);
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = () => {
        end();
        reject(signal.reason);
      };
      const look = () => {
        const known = this.#known;
        // A list that was asked for before the wait began may not know of the server yet.
        if (known === undefined || known.since < started) return;
        try {
          const item = known.items.get(id) ?? known.departed.get(id);
          const whole = known.wholeAt === known.since;
          const judged = judge({ item, whole, sure: whole && known.since - started > SETTLED_MS });
          if (judged === undefined) return;
          this.#remember(kind, this.#options.clock.monotonic() - started);
          end();
          resolve(judged);
        } catch (error) {
          end();
          reject(error);
        }
      };
      if (signal.aborted) return reject(signal.reason);
      if (this.#closed) return reject(new DriverError("transient", `the ${this.#options.what} is closed`));
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiters.set(look, kind);
      this.#wake(started + Math.max(this.#pause(), this.#patience(kind)));
    });
  }

  /** Something is known to have changed: whoever waits looks now. */
  hint(): void {
    if (this.#waiters.size > 0) this.#wake(this.#options.clock.monotonic());
  }

  close(): void {
    this.#closed = true;
    this.#shared.close();
    this.#sleeping?.abort(new Error("closed"));
  }

  /** Looks at `at` at the latest. */
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
    const crowd = Math.min(1, Math.max(0, this.#waiters.size - 1) / (CROWD - 1));
    const alone = [...this.#waiters.values()].includes("gone") ? LEAVING_MS : ALONE_MS;
    return alone - (alone - CROWD_MS) * crowd;
  }

  #patience(kind: Wait): number {
    const durations = this.#durations.get(kind);
    return durations === undefined ? 0 : Math.min(SLOWEST_MS, Math.min(...durations) * PATIENCE);
  }

  #remember(kind: Wait, ms: number): void {
    const durations = this.#durations.get(kind) ?? [];
    this.#durations.set(kind, [...durations.slice(1 - REMEMBERED), ms]);
  }

  /** Loads may overlap, and the answer to an older question must not replace that to a newer one. */
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

  /** By the cloud's own times: the newest change that we know of, less what its hosts may disagree. */
  #changedSince(items: ReadonlyMap<string, T>): string | undefined {
    const { changedAt } = this.#options;
    if (changedAt === undefined) return undefined;
    let newest = Number.NEGATIVE_INFINITY;
    for (const item of items.values()) newest = Math.max(newest, changedAt(item));
    return newest <= 0 ? undefined : new Date(newest - OVERLAP_MS).toISOString();
  }
}
