import {
  BadArguments,
  Closed,
  ConnectionLost,
  NoAuth,
  SessionExpired,
  type ZooKeeperError,
} from "../../errors.ts";
import type { Clock, Status, Timer, Watch, ZooKeeperClient } from "../../types.ts";
import { Effects } from "./effects.ts";
import { FetchQueue } from "./fetch-queue.ts";
import { Intake, type Machinery } from "./intake.ts";
import { KnownPaths } from "./known-paths.ts";
import { Playback } from "./playback.ts";
import type { CachedZnode, TreeCache, TreeCacheChange, TreeCacheOptions } from "./types.ts";
import { Walk } from "./walk.ts";

const DEFAULT_CONCURRENCY = 256;
/** Pause before a walk that failed for another reason than the connection is repeated; doubles up to the longest. */
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;

/** Follows `root`, which need not exist, and all below it. */
export function openTreeCache(client: ZooKeeperClient, root: string, options: TreeCacheOptions): TreeCache {
  if (!root.startsWith("/") || (root !== "/" && root.endsWith("/"))) {
    throw new BadArguments("the root of a tree cache is an absolute path without a slash at its end", {
      path: root,
    });
  }
  const cache = new Cache(client, root, options);
  cache.start();
  return cache;
}

class Cache implements TreeCache {
  readonly root: string;
  readonly #options: TreeCacheOptions;
  readonly #clock: Clock;
  readonly #known: KnownPaths;
  readonly #on: Machinery;
  readonly #intake: Intake;
  readonly #firstSynced: PromiseWithResolvers<void> = Promise.withResolvers();
  #nextSynced: PromiseWithResolvers<void> = this.#firstSynced;
  #unsubscribe: () => void = () => undefined;
  #watch: Watch | undefined;
  #walk: Walk | undefined;
  #retry: Timer | undefined;
  #failures = 0;
  /** Between a `gap` and its `synced`; a cache begins with all still to be compared. */
  #behind = true;
  #closed = false;

  constructor(client: ZooKeeperClient, root: string, options: TreeCacheOptions) {
    const { interest } = options;
    this.root = root;
    this.#options = options;
    this.#clock = options.clock ?? client.clock;
    this.#known = new KnownPaths(root);
    this.#on = {
      client,
      interest,
      descend: options.descend ?? ((path) => interest(path) !== "name"),
      fetches: new FetchQueue(options.concurrency ?? DEFAULT_CONCURRENCY),
      playback: new Playback(),
      effects: new Effects(this.#known, (change) => this.#tell(change)),
    };
    this.#intake = new Intake(this.#on, (error) => this.#failed(error));
    ignoreRejection(this.#firstSynced);
  }

  get synced(): Promise<void> {
    return this.#firstSynced.promise;
  }

  get size(): number {
    return this.#known.size;
  }

  get backlog(): { readonly fetches: number; readonly playback: number } {
    return { fetches: this.#on.fetches.waiting, playback: this.#on.playback.length };
  }

  get(path: string): CachedZnode | undefined {
    return this.#known.get(path);
  }

  children(path: string): Iterable<string> {
    return this.#known.children(path);
  }

  entries(): IterableIterator<[string, CachedZnode]> {
    return this.#known.entries();
  }

  start(): void {
    this.#unsubscribe = this.#on.client.onStatus((status) => this.#onStatus(status));
    void this.#addWatch();
  }

  resync(): Promise<void> {
    if (this.#closed) return Promise.reject(new Closed({ op: "resync", path: this.root }));
    const { promise } = this.#nextSynced;
    if (this.#walk === undefined) this.#startWalk();
    return promise;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#end();
    // The server's part of the watch ends with the session at the latest.
    await this.#watch?.remove().catch(() => undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The watch comes before the walk: what changes during the walk is reported by events. */
  async #addWatch(): Promise<void> {
    const { client } = this.#on;
    while (!this.#closed) {
      try {
        const watch = await client.addWatch(this.root, "persistent-recursive", (event) => {
          if (!this.#closed) this.#intake.take(event);
        });
        this.#watch = watch;
        if (this.#closed) await watch.remove().catch(() => undefined);
        else this.#startWalk();
        return;
      } catch (error) {
        if (error instanceof Closed) this.#end();
        if (isDisconnect(error)) continue;
        if (this.#closed) return;
        this.#problem(error);
        await this.#pause();
      }
    }
  }

  #onStatus({ state }: Status): void {
    if (state === "closed") this.#end();
    else if (state === "connected") this.#startWalk();
    else if (!this.#behind) {
      this.#behind = true;
      this.#tell({ type: "gap" });
    }
  }

  #startWalk(): void {
    if (this.#closed || this.#watch === undefined) return;
    this.#walk?.cancel();
    this.#retry?.cancel();
    this.#walk = new Walk(this.#on, this.#known, {
      done: () => this.#caughtUp(),
      failed: (error) => {
        this.#walk = undefined;
        this.#failed(error);
      },
      unreadable: (error) => this.#problem(error),
    });
    this.#walk.start(this.root);
  }

  #caughtUp(): void {
    const { resolve } = this.#nextSynced;
    this.#walk = undefined;
    this.#behind = false;
    this.#failures = 0;
    this.#nextSynced = Promise.withResolvers();
    ignoreRejection(this.#nextSynced);
    this.#tell({ type: "synced" });
    resolve();
  }

  /** A read failed, so something is missing: compare again, at once after a reconnect, otherwise after a pause. */
  #failed(error: unknown): void {
    if (this.#closed || isDisconnect(error) || error instanceof Closed) return;
    this.#problem(error);
    if (error instanceof NoAuth) return;
    void this.#pause().then(() => this.#startWalk());
  }

  #pause(): Promise<void> {
    const ms = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures, 10));
    this.#failures++;
    this.#retry?.cancel();
    return new Promise((resolve) => {
      this.#retry = this.#clock.setTimer(ms, resolve, { background: true });
    });
  }

  #problem(error: unknown): void {
    this.#options.onProblem?.(error as ZooKeeperError);
  }

  #tell(change: TreeCacheChange): void {
    if (!this.#closed) this.#options.onChange?.(change);
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#unsubscribe();
    this.#walk?.cancel();
    this.#retry?.cancel();
    const error = new Closed({ op: "tree cache", path: this.root });
    this.#firstSynced.reject(error);
    this.#nextSynced.reject(error);
  }
}

/** A reconnect or a new session follows, and a walk with it. */
function isDisconnect(error: unknown): boolean {
  return error instanceof ConnectionLost || error instanceof SessionExpired;
}

/** Whoever waits hears of the rejection; that nobody waits is no error. */
function ignoreRejection({ promise }: PromiseWithResolvers<void>): void {
  promise.catch(() => undefined);
}
