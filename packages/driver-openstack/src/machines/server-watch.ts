import { DriverError, SharedValue } from "@nodeyard/driver";
import { type Clock, sleep } from "@nodeyard/runtime";
import type { Server } from "../api/compute.ts";

type Servers = ReadonlyMap<string, Server>;

export interface ServerWatchOptions {
  readonly clock: Clock;
  /** All servers, or those that changed since an ISO time, deleted ones included. */
  readonly list: (signal: AbortSignal, since?: string) => Promise<readonly Server[]>;
  /** A listing failed; it is tried again while anybody waits. */
  readonly onFailure: (error: unknown) => void;
}

/** Milliseconds between two looks, for one who waits; more of them make it worth to look more often. */
const ALONE_MS = 2_000;
/** Whose quota others wait for is looked at sooner. */
const LEAVING_MS = 1_250;
const CROWD_MS = 1_000;
const CROWD = 10;
/** So many servers are listed at once as cheaply as what changed of them, which tells the deleted ones for half a minute more. */
const FEW = 200;
/** What a look found of one server. */
export interface ServerSnapshot {
  /** As listed, or reported as deleted; undefined: not listed. */
  readonly server: Server | undefined;
  /** All were listed, not only what changed: what is missing is not there, or is just handed to its host. */
  readonly whole: boolean;
  /** All were listed, and not too soon after the wait began: it should be listed, were it there. */
  readonly sure: boolean;
}

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

interface Known {
  readonly servers: Servers;
  /** Those that the last listing reported as deleted. */
  readonly departed: Servers;
  /** Monotonic time at which it was asked for. */
  readonly since: number;
  readonly wholeAt: number;
}

/**
 * One listing for all who wait for servers, instead of one poll for each. It looks only while somebody waits, not before the
 * shortest of the recent waits has nearly passed, and asks for what changed where that is enough.
 */
export class ServerWatch {
  readonly #options: ServerWatchOptions;
  readonly #shared: SharedValue<Servers>;
  readonly #waiters = new Map<() => void, Wait>();
  readonly #durations = new Map<Wait, number[]>();
  #known: Known | undefined;
  #looking = false;
  #wakeAt = Number.POSITIVE_INFINITY;
  #sleeping: AbortController | undefined;
  #closed = false;

  constructor(options: ServerWatchOptions) {
    this.#options = options;
    this.#shared = new SharedValue({
      clock: options.clock,
      load: (signal) => this.#load(signal),
      what: "list of servers",
      freshMs: FRESH_MS,
      staleMs: FRESH_MS,
    });
  }

  /** All servers of the project. `now`: as a listing shows them that began after this call. */
  async all(signal: AbortSignal, now: boolean): Promise<Servers> {
    signal.throwIfAborted();
    if (now) this.#shared.invalidate();
    return this.#shared.get(signal);
  }

  /** All servers by a listing of all, whatever is known: for those who conclude something from what is missing. */
  async whole(signal: AbortSignal): Promise<Servers> {
    signal.throwIfAborted();
    this.#known = undefined;
    return this.all(signal, true);
  }

  /**
   * Resolves with the first thing that `judge` makes of what a look found, or rejects with what it throws, or with the
   * signal's reason. Failed listings only delay: the caller's deadline is the limit. `kind` names what is waited for, since a
   * boot takes longer than a deletion.
   */
  wait<T>(
    kind: Wait,
    id: string,
    judge: (snapshot: ServerSnapshot) => T | undefined,
    signal: AbortSignal,
  ): Promise<T> {
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
          const server = known.servers.get(id) ?? known.departed.get(id);
          const whole = known.wholeAt === known.since;
          const judged = judge({ server, whole, sure: whole && known.since - started > SETTLED_MS });
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
      if (this.#closed) return reject(new DriverError("transient", "the list of servers is closed"));
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiters.set(look, kind);
      this.#wake(started + Math.max(this.#pause(), this.#patience(kind)));
    });
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
  async #load(signal: AbortSignal): Promise<Servers> {
    const since = this.#options.clock.monotonic();
    const base = this.#known;
    const whole = base === undefined || base.servers.size <= FEW || since - base.wholeAt > WHOLE_MS;
    const changed = whole ? undefined : changedSince(base.servers);
    const listed = await this.#options.list(signal, changed);
    const servers = new Map(changed === undefined ? [] : base!.servers);
    const departed = new Map<string, Server>();
    for (const server of listed) {
      const [enters, leaves] = isGone(server) ? [departed, servers] : [servers, departed];
      enters.set(server.id, server);
      leaves.delete(server.id);
    }
    if (this.#known === undefined || this.#known.since <= since)
      this.#known = { servers, departed, since, wholeAt: changed === undefined ? since : base!.wholeAt };
    return servers;
  }
}

export function isGone({ status }: Server): boolean {
  const word = status.toUpperCase();
  return word === "DELETED" || word === "SOFT_DELETED";
}

/** By the cloud's own times: the newest change that we know of, less what its hosts may disagree. */
function changedSince(servers: Servers): string | undefined {
  let newest = Number.NEGATIVE_INFINITY;
  for (const { updated } of servers.values()) newest = Math.max(newest, Date.parse(updated ?? "") || 0);
  return newest <= 0 ? undefined : new Date(newest - OVERLAP_MS).toISOString();
}
