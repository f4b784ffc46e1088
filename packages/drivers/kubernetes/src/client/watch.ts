import { EventEmitter, once } from "node:events";
import { ApiError, CloudConfigError, type DriverContext, NoAnswer, wasRefused } from "@nodeyard/driver";
import { backoff, deadline, jitter, sleep } from "@nodeyard/runtime";
import { type Connection, type KubeObject, listAll } from "./connection.ts";

interface WatchOptions extends Pick<DriverContext, "clock" | "random"> {
  readonly connection: Connection;
  /** Path of the collection, such as `/api/v1/pods`. */
  readonly path: string;
  /** Selects objects. The watch has only those that match; one whose label is removed is reported as deleted. */
  readonly query?: Readonly<Record<string, string>>;
  /** Called when the list or the watch failed. The watch retries by itself. */
  readonly onFailure: (error: unknown) => void;
  /** Called when the last user has closed it. */
  readonly onUnused?: () => void;
}

/** A line of a watch. The object of an ERROR is a Status; that of a BOOKMARK has only a version. */
interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject & { readonly code?: number; readonly message?: string };
}

/** Seconds after which the server ends a watch: a new one is authorized again and may reach another replica of the server. */
const WATCH_S = 290;
/** The same where the server sends no bookmarks, so that a quiet watch cannot be told from a lost one: it ends before it counts as lost. */
const QUIET_WATCH_S = 120;
/** Milliseconds between complete lists. They bound the delay when an event was lost, or when the server was restored to an older state. */
const RESYNC_MS = 600_000;
/** Longest pause before a failed list or watch is tried again, milliseconds. */
const SLOWEST_MS = 5_000;
/** HTTP 410: the server no longer knows the resource version (compacted or restarted), so a new list is needed. */
const GONE = 410;

/**
 * All objects of a collection, kept up to date by one list and one watch (https://kubernetes.io/docs/reference/using-api/api-concepts/,
 * "Efficient detection of changes"). A watch resumes at the version of the last event or bookmark; when the server no longer knows it,
 * everything is listed again. It begins with the first `look`, and retries until the last of its `uses` is closed; readers see the last known
 * state during an outage.
 *
 * A collection whose lists have no version (OpenShift's projects) cannot be resumed: it is listed before each watch, and a deletion that
 * names nothing but the object counts as one of the object that is known.
 */
export class ObjectWatch {
  uses = 0;
  readonly #options: WatchOptions;
  /** Latest known state by `keyOf`. Its version never decreases: events, lists and noted answers may arrive in any order. */
  readonly #objects = new Map<string, KubeObject>();
  /** Tells what changed: an object, by `keyOf`; "synced" with each list and each failure; "error" when the watch is closed. */
  readonly #news = new EventEmitter().setMaxListeners(0);
  readonly #closed = new AbortController();
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
  #isRunning = false;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** To be called once by each user. */
  close(): void {
    if (--this.uses > 0) return;
    this.#options.onUnused?.();
    this.end();
  }

  /** Ends the watch. Waiting callers get an error. */
  end(): void {
    const closed = new NoAnswer(`the watch of ${this.#options.path} is closed`);
    this.#closed.abort(closed);
    if (this.#news.listenerCount("error") > 0) this.#news.emit("error", closed);
  }

  /** Resolves when everything has been listed once. Rejects when trying again would not help; the next look then begins anew. */
  async look(signal: AbortSignal): Promise<this> {
    signal.throwIfAborted();
    if (!this.#isRunning) void this.#run();
    while (!this.#isSynced) {
      if (isLasting(this.#error)) throw this.#error;
      await this.#told("synced", signal);
    }
    return this;
  }

  /** The object as last seen; undefined when there is none, or before `look`. */
  get(name: string, namespace = ""): KubeObject | undefined {
    return this.#objects.get(`${namespace}/${name}`);
  }

  values(): Iterable<KubeObject> {
    return this.#objects.values();
  }

  /** Stores the answer of a call of this process, so that readers need not wait for the watch event. */
  note(object: KubeObject): void {
    if (this.#isNews(object)) this.#tell(object);
  }

  /** The server does not have the object any more, as a call of this process learnt. A later object of the name stays. */
  forget(object: KubeObject): void {
    const known = this.#objects.get(keyOf(object));
    if (known?.metadata.uid === object.metadata.uid) this.#tell(known, false);
  }

  /**
   * Resolves to the first result of `judge` that is not undefined; rejects with its error. `judge` gets undefined when the object does not
   * exist, and then its last state if it was deleted during the wait: that state says why.
   */
  async wait<R>(
    { name, namespace = "" }: { readonly name: string; readonly namespace?: string },
    judge: (object: KubeObject | undefined, last: KubeObject | undefined) => R | undefined,
    signal: AbortSignal,
  ): Promise<R> {
    const key = `${namespace}/${name}`;
    for (let last: KubeObject | undefined; ; ) {
      const judged = judge(this.#objects.get(key), last);
      if (judged !== undefined) return judged;
      last = await this.#told(key, signal);
    }
  }

  /** The next news of this name. Rejects when the signal aborts or the watch is closed. */
  async #told(name: string, signal: AbortSignal): Promise<KubeObject> {
    this.#closed.signal.throwIfAborted();
    try {
      const [latest] = await once(this.#news, name, { signal });
      return latest;
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  /** Lists when there is no version to resume at, then follows the watch, until it is closed or may not list at all. Never rejects. */
  async #run(): Promise<void> {
    const { clock, random, onFailure } = this.#options;
    const { signal } = this.#closed;
    this.#isRunning = true;
    this.#error = undefined;
    for (let failures = 0; !signal.aborted; ) {
      // By the clock, not by a timer of the watch: each watch ends sooner than that.
      const isListing = this.#version === undefined || !this.#resumes || clock.monotonic() >= this.#listAt;
      try {
        if (isListing) await this.list(signal);
        // Returns when the server ended the watch after WATCH_S, which is no failure.
        await this.#follow(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (wasRefused(error, GONE)) {
          this.#version = undefined;
          // A server that does not know the version of its own latest list is not asked again without a pause.
          if (!isListing) continue;
        }
        this.#error = error;
        onFailure(error);
        this.#isRunning = this.#isSynced || !isLasting(error);
        this.#news.emit("synced");
        if (!this.#isRunning) return;
        await sleep(clock, backoff(random, failures++, 100, SLOWEST_MS), signal).catch(() => {});
      }
    }
  }

  /** Lists the collection, adds what is new, and removes what the list does not have. It may be called at any time. */
  async list(signal: AbortSignal): Promise<void> {
    const { connection, clock, random, path, query } = this.#options;
    // What is known by now is older than the list, whatever its version: a server that was restored counts versions anew.
    const before = new Map(this.#objects);
    const { items, version } = await listAll<KubeObject>(connection, path, signal, query);
    const listed = new Set(items.map(keyOf));
    for (const item of items) {
      const key = keyOf(item);
      const known = this.#objects.get(key);
      // Told meanwhile: what was told may be newer, or be its end.
      if (known !== before.get(key)) {
        if (known !== undefined) this.note(item);
      } else if (known?.metadata.resourceVersion !== item.metadata.resourceVersion) this.#tell(item);
    }
    for (const [key, known] of before)
      if (!listed.has(key) && this.#objects.get(key) === known) this.#tell(known, false);
    this.#resumes = Boolean(version);
    this.#version = version || "0";
    this.#listAt = clock.monotonic() + jitter(random, RESYNC_MS);
    this.#isSynced = true;
    this.#error = undefined;
    this.#news.emit("synced");
  }

  /** Follows one watch to its end. Rejects when the connection is lost or silent, and when the server no longer knows the version. */
  async #follow(signal: AbortSignal): Promise<void> {
    const { connection, clock, path, query: selected } = this.#options;
    const seconds = this.#resumes ? WATCH_S : QUIET_WATCH_S;
    const query = {
      ...selected,
      watch: "1",
      allowWatchBookmarks: "true",
      resourceVersion: this.#version!,
      timeoutSeconds: String(seconds),
    };
    const late = () => new NoAnswer(`the watch of ${path} did not end after ${seconds} s`);
    using limit = deadline(clock, 2_000 * seconds, late, signal);
    for await (const line of connection.lines({ path, query, signal: limit.signal }))
      this.#take(line as WatchEvent);
  }

  /** Applies one event. An ERROR ends the watch, and its version is asked for again or given up (`GONE`). */
  #take({ type, object }: WatchEvent): void {
    if (type === "ERROR") {
      const { code: status = 500, message: text = "" } = object;
      throw new ApiError(`watch of ${this.#options.path}`, { status, text });
    }
    const known = this.#objects.get(keyOf(object));
    if (this.#resumes) this.#version = object.metadata.resourceVersion;
    else if (type === "DELETED") return known && this.#tell(known, false);
    if (type === "BOOKMARK") return;
    if (type !== "DELETED") this.note(object);
    else if (known !== undefined && this.#isNews(object)) this.#tell(object, false);
  }

  /** Whether it is newer. Resource versions of a server are increasing numbers (etcd revisions), as the API documents since 1.35. */
  #isNews(object: KubeObject): boolean {
    const known = this.#objects.get(keyOf(object))?.metadata.resourceVersion;
    return known === undefined || Number(known) <= Number(object.metadata.resourceVersion);
  }

  /** The latest state of an object, or its last. */
  #tell(object: KubeObject, isThere = true): void {
    if (isThere) this.#objects.set(keyOf(object), object);
    else this.#objects.delete(keyOf(object));
    this.#news.emit(keyOf(object), object);
  }
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

/** A refusal, or a kubeconfig that cannot be used. */
function isLasting(error: unknown): boolean {
  return error instanceof CloudConfigError || wasRefused(error, 400, 401, 403, 404);
}
