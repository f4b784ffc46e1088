import type { Clock, Random, Timer } from "../../types.ts";
import type { Stat } from "../../wire/messages.ts";
import { Reads } from "./reads.ts";
import { ReportedState } from "./reported-state.ts";
import type { Interest, Source, SourceEvent, TreeCacheOptions } from "./types.ts";
import { Walk } from "./walk.ts";

const DEFAULT_CONCURRENCY = 256;
/** How long a cache waits before it compares itself again after a read failed for no fault of the connection. */
const RETRY_MS = 1_000;

/** What a follower is given besides its source: time, chance, and how the source's errors are to be read. */
export interface FollowerOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** After a reconnect the comparison begins at a moment in this span (ms), so that not all clients do at once. */
  readonly resyncSpreadMs: number;
  /** Called once, when nothing is reported any more. */
  readonly onEnd: () => void;
  /** What is rejected with after the end. */
  readonly closed: () => Error;
  /** Whether a read failed since we may not read the path: it is not there for us, and every other failure ends a walk. */
  readonly isForbidden: (error: Error) => boolean;
}

/**
 * Follows a subtree over a connection: events say which paths changed, reads say how, and a walk compares all of it by stat when events
 * may have been missed. Reads are asynchronous and keep the order of the events that asked for them; of one path no older state is ever
 * reported after a newer one.
 */
export class Follower {
  readonly root: string;
  readonly synced: Promise<void>;
  readonly #first = Promise.withResolvers<void>();
  readonly #source: Source;
  readonly #options: FollowerOptions;
  readonly #told: ReportedState;
  readonly #reads: Reads;
  readonly #walk: Walk;
  #waiters: PromiseWithResolvers<void>[] = [];
  #unwatch: () => Promise<void> = async () => {};
  #unsubscribe: () => void = () => {};
  #timer: Timer | undefined;
  #epoch = -1;
  /** The connection stands and the watch with it: events are complete, reads make sense. */
  #ready = false;
  #walking = false;
  /** Between a gap and its synced; a cache begins in one. */
  #open = true;
  #ended = false;

  constructor(source: Source, root: string, cache: TreeCacheOptions, options: FollowerOptions) {
    this.#source = source;
    this.root = root;
    this.#options = options;
    this.#told = new ReportedState(cache);
    this.#reads = new Reads(
      cache.concurrency ?? DEFAULT_CONCURRENCY,
      (path, done) => this.#fetch(path, done),
      () => this.#walked(),
    );
    this.#walk = new Walk(source, this.#told, this.#reads, cache, (error) => this.#failed(error));
    this.synced = this.#first.promise;
    // Whoever closes a cache early need not have waited for it.
    this.synced.catch(() => undefined);
  }

  start(): void {
    if (this.#source.session().state === "closed") return this.end();
    this.#unsubscribe = this.#source.onSession((session) => this.#session(session));
    this.#unwatch = this.#source.watch(
      this.root,
      (event) => this.#event(event),
      () => this.#stands(),
    );
  }

  resync(): Promise<void> {
    if (this.#ended) return Promise.reject(this.#options.closed());
    const waiter = Promise.withResolvers<void>();
    this.#waiters.push(waiter);
    // A walk that runs began before this call, so it does not count for it.
    if (this.#ready && !this.#walking) this.#begin();
    return waiter.promise;
  }

  pending(): { readonly events: number; readonly walk: number } {
    return this.#reads.pending();
  }

  async close(): Promise<void> {
    if (this.#ended) return;
    this.end();
    await this.#unwatch();
  }

  /** Nothing is reported after this. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#ready = false;
    this.#timer?.cancel();
    this.#reads.clear();
    this.#unsubscribe();
    const closed = this.#options.closed();
    this.#first.reject(closed);
    for (const waiter of [...this.#waiters, ...this.#walk.waiters]) waiter.reject(closed);
    this.#waiters = [];
    this.#options.onEnd();
  }

  /** What is known better than by events and reads: a write of the owner's own that was answered. */
  protected put(path: string, data: Uint8Array, stat: Stat): void {
    const interest = this.#told.interest(path);
    if (interest === "data") this.#told.put(path, data, stat);
    else if (interest === "name") this.#told.name(path);
  }

  protected gone(path: string): void {
    if (this.#told.interest(path) === "none") return;
    this.#reads.forget(path);
    this.#told.remove(path);
  }

  /** What is at a path must be asked. */
  protected dirty(path: string): void {
    // After a gap the walk asks for everything.
    if (this.#ready && this.#told.interest(path) !== "none") this.#reads.live(path);
  }

  /** Whether the owner takes an event, to say later what is at its path. */
  protected parks(_event: SourceEvent): boolean {
    return false;
  }

  /** Events may have been missed: what was parked is asked for by the walk. */
  protected onGap(): void {}

  protected get ended(): boolean {
    return this.#ended;
  }

  protected covers(path: string): boolean {
    const { root } = this;
    if (root === "/" || path === root) return true;
    return path.length > root.length && path[root.length] === "/" && path.startsWith(root);
  }

  #event(event: SourceEvent): void {
    if (this.#ended || !this.#ready) return;
    const { type, path } = event;
    const interest: Interest = this.#told.interest(path);
    if (interest === "none" || this.parks(event)) return;
    if (type === "deleted") this.gone(path);
    else if (interest === "data") this.#reads.live(path);
    else if (type === "created") this.#told.name(path);
  }

  #fetch(path: string, done: () => void): void {
    if (this.#told.interest(path) === "data") {
      this.#source.get(path, (error, found) => {
        if (this.#readAnswered(path, error, found !== undefined, done) && found !== undefined)
          this.#told.put(path, found.data, found.stat);
      });
    } else {
      this.#source.stat(path, (error, stat) => {
        if (this.#readAnswered(path, error, stat !== undefined, done) && stat !== undefined)
          this.#told.name(path);
      });
    }
  }

  #readAnswered(path: string, error: Error | undefined, found: boolean, done: () => void): boolean {
    if (this.#ended) return false;
    if (error !== undefined) this.#failed(error);
    else if (!found) this.#told.remove(path);
    done();
    return error === undefined;
  }

  #session(session: { readonly state: string; readonly epoch: number }): void {
    if (session.state === "connected" && session.epoch === this.#epoch) return;
    if (session.state === "closed") this.end();
    else if (session.state !== "connected") this.#gap();
  }

  /** The watch stands: from here on events are complete, and what was before is found by comparing. */
  #stands(): void {
    if (this.#ended) return;
    const { epoch } = this.#source.session();
    const first = this.#epoch < 0;
    this.#epoch = epoch;
    this.#gap();
    this.#ready = true;
    const { clock, random, resyncSpreadMs } = this.#options;
    if (first || resyncSpreadMs === 0) this.#begin();
    else this.#later(random.float() * resyncSpreadMs, clock);
  }

  #later(ms: number, clock: Clock): void {
    this.#timer?.cancel();
    this.#timer = clock.setTimer(
      ms,
      () => {
        if (this.#ready && !this.#walking) this.#begin();
      },
      { background: true },
    );
  }

  #gap(): void {
    this.#ready = false;
    this.#timer?.cancel();
    this.onGap();
    this.#abandon();
    this.#tellGap();
  }

  #tellGap(): void {
    if (this.#open) return;
    this.#open = true;
    this.#told.gap();
  }

  #abandon(): void {
    this.#reads.clear();
    if (!this.#walking) return;
    this.#walking = false;
    // Who waited for the walk that broke waits for the next one.
    this.#waiters.unshift(...this.#walk.waiters);
    this.#walk.waiters = [];
  }

  /** A comparison that was only asked for is no gap: nothing is known to be missing. */
  #begin(): void {
    this.#timer?.cancel();
    this.#walking = true;
    this.#walk.waiters = this.#waiters;
    this.#waiters = [];
    this.#walk.begin(this.root);
  }

  #walked(): void {
    if (this.#ended || !this.#walking) return;
    this.#walking = false;
    this.#open = false;
    const { waiters } = this.#walk;
    this.#walk.waiters = [];
    this.#told.endWalk();
    this.#first.resolve();
    for (const waiter of waiters) waiter.resolve();
    if (this.#waiters.length > 0 && this.#ready) this.#begin();
  }

  /** A read broke. With its connection the gap comes anyway; otherwise only comparing makes us whole again. */
  #failed(error: Error): void {
    if (this.#ended || !this.#ready || this.#options.isForbidden(error)) return;
    this.#abandon();
    this.#tellGap();
    this.#later(RETRY_MS, this.#options.clock);
  }
}
