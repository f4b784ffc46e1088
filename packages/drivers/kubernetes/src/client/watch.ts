import { ApiError, CloudConfigError, NoAnswer, wasRefused } from "@nodeyard/driver";
import { backoff, type Clock, defined, jitter, type Random, sleep } from "@nodeyard/runtime";
import type { Connection } from "./connection.ts";
import { type KubeObject, type List, listAll } from "./objects.ts";

export interface WatchOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  /** Path of the collection, such as `/api/v1/pods`. */
  readonly path: string;
  /** Label selector. The watch then has only objects that match; one whose label is removed is reported as deleted. */
  readonly selector?: string;
  /** Called when the list or the watch failed. The watch retries by itself. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * A line of a watch (https://kubernetes.io/docs/reference/using-api/api-concepts/, "Efficient detection of changes"). The object
 * of an ERROR is a Status; that of a BOOKMARK has only a version.
 */
interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject & { readonly code?: number; readonly message?: string };
}

/** Seconds after which the server ends a watch: a new one is authorized again and may reach another replica of the server. */
const WATCH_S = 290;
/** Milliseconds without an event after which the connection is considered lost: the server sends a bookmark every minute. */
const SILENCE_MS = 150_000;
/** The same where the server sends no bookmarks, so that a quiet watch cannot be told from a lost one: it ends before it counts as lost. */
const QUIET_WATCH_S = 120;
/** Milliseconds between complete lists. They bound the delay when an event was lost, or when the server was restored to an older state. */
const RESYNC_MS = 600_000;
/** Longest pause before a failed list or watch is tried again, milliseconds. */
const SLOWEST_MS = 5_000;
/** HTTP 410: the server no longer knows the resource version (compacted or restarted), so a new list is needed. */
const GONE = 410;

/**
 * All objects of a collection, kept up to date by one list and one watch that all callers share. A watch resumes at the version
 * of the last event or bookmark. When the server no longer knows that version, everything is listed again.
 *
 * It begins when it is made, and retries with back-off until `close`. Readers see the last known state during an outage. A
 * deletion that no event reported is noticed at the next list.
 *
 * A collection whose lists have no version (OpenShift's projects) cannot be resumed: it is listed before each watch, and a deletion that
 * names nothing but the object counts as one of the object that is known.
 */
export class ObjectWatch<T extends KubeObject> {
  readonly #options: WatchOptions;
  /** Latest known state by `keyOf`. Its version never decreases: events, lists and noted answers may arrive in any order. */
  readonly #objects = new Map<string, T>();
  /** Callers of `wait` by object, so that an event wakes only those that look at its object. */
  readonly #waiters = new Map<string, Set<(latest: T) => void>>();
  readonly #closed = new AbortController();
  /** Callers of `synced`, woken by each list and each failure. */
  readonly #onSync = new Set<() => void>();
  /** Version at which the next watch begins; undefined: list first. */
  #version: string | undefined;
  /** Lists have a version, so that a watch can go on where the last one ended. */
  #resumes = true;
  /** Monotonic time at which the next complete list is due, whatever events say. */
  #listAt = 0;
  /** Everything has been listed once. It stays true during outages. */
  #isSynced = false;
  /** Error of the latest attempt; undefined after a list. */
  #error: unknown;
  /** How many `use` calls have no `release` yet. */
  #users = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
    void this.#run();
  }

  /** Each user calls this once, and `release` once. The last release closes the watch. */
  use(): this {
    this.#users++;
    return this;
  }

  /** Returns true when this was the last user, so that the watch is closed. */
  release(): boolean {
    if (--this.#users > 0) return false;
    this.close();
    return true;
  }

  /** Ends the watch. Waiting callers get an error. */
  close(): void {
    this.#closed.abort(new NoAnswer(`the watch of ${this.#options.path} is closed`));
  }

  /** Resolves when everything has been listed once. Rejects when trying again would not help, or with the signal's reason. */
  async synced(signal: AbortSignal): Promise<this> {
    while (!this.#isSynced) {
      if (isLasting(this.#error)) throw this.#error;
      await this.#change(this.#onSync, signal);
    }
    return this;
  }

  /** The object as last seen; undefined when there is none, or before `synced`. */
  get(name: string, namespace = ""): T | undefined {
    return this.#objects.get(`${namespace}/${name}`);
  }

  values(): Iterable<T> {
    return this.#objects.values();
  }

  /** Stores the answer of a call of this process, so that readers need not wait for the watch event. */
  note(object: T): void {
    const known = this.#objects.get(keyOf(object));
    if (known === undefined || versionOf(known) < versionOf(object)) this.#set(object);
  }

  /** The server does not have the object any more, as a call of this process learnt. A later object of the name stays. */
  forget(object: T): void {
    const known = this.#objects.get(keyOf(object));
    if (known?.metadata.uid === object.metadata.uid) this.#delete(known);
  }

  /**
   * Resolves to the first result of `judge` that is not undefined; rejects with its error. `judge` gets undefined when the object does not
   * exist, and then its last state if it was deleted during the wait: that state says why.
   */
  async wait<R>(
    { name, namespace = "" }: { readonly name: string; readonly namespace?: string },
    judge: (object: T | undefined, last: T | undefined) => R | undefined,
    signal: AbortSignal,
  ): Promise<R> {
    const key = `${namespace}/${name}`;
    for (let last: T | undefined; ; ) {
      const judged = judge(this.#objects.get(key), last);
      if (judged !== undefined) return judged;
      const waiters = this.#waiters.get(key) ?? new Set();
      this.#waiters.set(key, waiters);
      try {
        last = await this.#change(waiters, signal);
      } finally {
        // Another caller may have made a new set for the same object.
        if (waiters.size === 0 && this.#waiters.get(key) === waiters) this.#waiters.delete(key);
      }
    }
  }

  /**
   * Resolves with the next value that a set of waiters gets. Rejects when the signal aborts or the watch is closed. Leaves no
   * listener behind.
   */
  #change<V>(waiters: Set<(value: V) => void>, signal: AbortSignal): Promise<V> {
    return new Promise((resolve, reject) => {
      const closed = this.#closed.signal;
      const end = () => {
        waiters.delete(changed);
        for (const one of [signal, closed]) one.removeEventListener("abort", aborted);
      };
      const changed = (value: V) => {
        end();
        resolve(value);
      };
      const aborted = () => {
        end();
        reject(signal.aborted ? signal.reason : closed.reason);
      };
      if (signal.aborted || closed.aborted) return aborted();
      waiters.add(changed);
      for (const one of [signal, closed]) one.addEventListener("abort", aborted, { once: true });
    });
  }

  /** Lists when there is no version to resume at, then follows the watch, until it is closed. Never rejects. */
  async #run(): Promise<void> {
    const { clock, random, onFailure } = this.#options;
    const { signal } = this.#closed;
    for (let failures = 0; !signal.aborted; ) {
      // By the clock, not by a timer of the watch: each watch ends sooner than that.
      const isListing = this.#version === undefined || !this.#resumes || clock.monotonic() >= this.#listAt;
      try {
        if (isListing) await this.#list(signal);
        // Returns when the server ended the watch after WATCH_S, which is no failure.
        await this.#follow(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (isGone(error)) {
          this.#version = undefined;
          // A server that does not know the version of its own latest list is not asked again without a pause.
          if (!isListing) continue;
        }
        this.#error = error;
        onFailure(error);
        for (const wake of [...this.#onSync]) wake();
        await sleep(clock, backoff(random, failures++, 100, SLOWEST_MS), signal).catch(() => {});
      }
    }
  }

  /** Lists the collection, adds what is new, and removes what the list does not have. */
  async #list(signal: AbortSignal): Promise<void> {
    const { connection, clock, random, path } = this.#options;
    const page = (query: Readonly<Record<string, string>>) =>
      connection.get<List<T>>({ path, query: { ...this.#selector, ...query }, signal });
    // What is known by now is older than the list, whatever its version: a server that was restored counts versions anew.
    const before = new Map(this.#objects);
    const { items, version } = await listAll<T>(page);
    const listed = new Set(items.map(keyOf));
    for (const item of items) {
      const key = keyOf(item);
      const known = this.#objects.get(key);
      if (known === undefined || known !== before.get(key)) this.note(item);
      else if (known.metadata.resourceVersion !== item.metadata.resourceVersion) this.#set(item);
    }
    for (const [key, known] of before)
      if (!listed.has(key) && this.#objects.get(key) === known) this.#delete(known);
    this.#resumes = version !== undefined && version !== "";
    this.#version = this.#resumes ? version : "0";
    this.#listAt = clock.monotonic() + jitter(random, RESYNC_MS);
    this.#isSynced = true;
    this.#error = undefined;
    for (const wake of [...this.#onSync]) wake();
  }

  /** Follows one watch to its end. Rejects when the connection is lost or silent, and when the server no longer knows the version. */
  async #follow(signal: AbortSignal): Promise<void> {
    const { connection, clock, path } = this.#options;
    const own = new AbortController();
    const stop = () => own.abort(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    const silent = () => own.abort(new NoAnswer(`the watch of ${path} was silent for ${SILENCE_MS} ms`));
    let guard = clock.setTimer(SILENCE_MS, silent);
    const query = {
      ...this.#selector,
      watch: "1",
      allowWatchBookmarks: "true",
      resourceVersion: this.#version!,
      timeoutSeconds: String(this.#resumes ? WATCH_S : QUIET_WATCH_S),
    };
    try {
      for await (const line of connection.lines({ path, query, signal: own.signal })) {
        guard.cancel();
        guard = clock.setTimer(SILENCE_MS, silent);
        this.#take(line as WatchEvent);
      }
    } finally {
      guard.cancel();
      signal.removeEventListener("abort", stop);
    }
  }

  /** Applies one event. An ERROR ends the watch, and its version is asked for again or given up (`isGone`). */
  #take({ type, object }: WatchEvent): void {
    if (type === "ERROR")
      throw new ApiError(
        `watch of ${this.#options.path}`,
        { status: object.code ?? 500, text: "" },
        { text: object.message },
      );
    const known = this.#objects.get(keyOf(object));
    if (this.#resumes) this.#version = object.metadata.resourceVersion;
    else if (type === "DELETED") return known && this.#delete(known);
    if (type === "BOOKMARK") return;
    if (type !== "DELETED") return this.note(object as unknown as T);
    if (known !== undefined && versionOf(known) <= versionOf(object)) this.#delete(object as unknown as T);
  }

  #set(object: T): void {
    this.#objects.set(keyOf(object), object);
    this.#tell(object);
  }

  #delete(last: T): void {
    this.#objects.delete(keyOf(last));
    this.#tell(last);
  }

  #tell(latest: T): void {
    for (const resolve of [...(this.#waiters.get(keyOf(latest)) ?? [])]) resolve(latest);
  }

  get #selector(): Readonly<Record<string, string>> {
    return defined({ labelSelector: this.#options.selector });
  }
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

/** Resource versions of a server are increasing numbers (etcd revisions). The API documents this since 1.35; it was so before. */
function versionOf({ metadata }: KubeObject): number {
  return Number(metadata.resourceVersion);
}

/** A refusal, or a kubeconfig that cannot be used: callers that wait are told at once, while the watch goes on trying. */
function isLasting(error: unknown): boolean {
  if (error instanceof CloudConfigError) return true;
  return wasRefused(error, 400, 401, 403, 404);
}

function isGone(error: unknown): boolean {
  return wasRefused(error, GONE);
}
