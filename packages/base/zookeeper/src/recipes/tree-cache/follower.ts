import type { Clock, Random, Timer } from "../../types.ts";
import type { Stat } from "../../wire/messages.ts";
import { Reads } from "./reads.ts";
import { ReportedState } from "./reported-state.ts";
import type { Interest, Source, SourceEvent, TreeCacheOptions } from "./types.ts";
import { Walk } from "./walk.ts";

/** Reads in flight. Enough to hide the latency of a walk without filling the client's queue for other operations. */
const DEFAULT_CONCURRENCY = 256;
/** Delay before the cache compares itself again, after a read failed although the connection stands (milliseconds). */
const RETRY_MS = 1_000;

/** What a follower needs besides its source: clock, randomness, and how to read the source's errors. */
export interface FollowerOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** After a reconnect the comparison starts at a random moment within this span (ms), so that not all clients read at once. */
  readonly resyncSpreadMs: number;
  /** Called once, after the last report. */
  readonly onEnd: () => void;
  /** Makes the error with which waiting callers are rejected when the follower closes. */
  readonly closed: () => Error;
  /** Whether a read failed because the access list denies it. The follower treats such a path as absent; other errors end the walk. */
  readonly isForbidden: (error: Error) => boolean;
}

/**
 * Follows a subtree over a connection. Events say which paths changed, reads fetch their state, and a walk compares the whole subtree by
 * stat when events may have been missed. Reads are asynchronous and are started in the order of the events that caused them. For one path
 * an older state is never reported after a newer one.
 */
export class Follower {
  readonly root: string;
  /** Resolves at the end of the first walk; rejects when the follower is closed before. */
  readonly synced: Promise<void>;
  readonly #first = Promise.withResolvers<void>();
  readonly #source: Source;
  readonly #options: FollowerOptions;
  readonly #reported: ReportedState;
  readonly #reads: Reads;
  readonly #walk: Walk;
  /** Callers of `resync` that wait for the next walk. A walk in progress began before they called. */
  #waiters: PromiseWithResolvers<void>[] = [];
  #unwatch: () => Promise<void> = async () => {};
  #unsubscribe: () => void = () => {};
  #timer: Timer | undefined;
  /** Session in which the watch was set last; -1 before the first. */
  #epoch = -1;
  /** The connection and the watch stand: every change causes an event, and reads can be answered. */
  #ready = false;
  /** A walk is in progress. Answers to a walk that was abandoned are ignored (`Reads.clear`). */
  #walking = false;
  /** True between a "gap" and its "synced". A cache starts in a gap. */
  #open = true;
  #ended = false;

  constructor(source: Source, root: string, cache: TreeCacheOptions, options: FollowerOptions) {
    this.#source = source;
    this.root = root;
    this.#options = options;
    this.#reported = new ReportedState(cache);
    this.#reads = new Reads(
      cache.concurrency ?? DEFAULT_CONCURRENCY,
      (path, done) => this.#fetch(path, done),
      () => this.#walked(),
    );
    this.#walk = new Walk(source, this.#reported, this.#reads, cache, (error) => this.#failed(error));
    this.synced = this.#first.promise;
    // A caller that closes the cache early may never await `synced`; its rejection must not crash the process.
    this.synced.catch(() => undefined);
  }

  /** Called once, after the constructor, because a source may call back at once. */
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
    // A walk that is running began before this call and may have passed a path that changed since, so another walk follows it.
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

  /** Ends all work. Nothing is reported after this. */
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

  /** Takes a state that did not come from an event or a read: the answer to a write of this client. */
  protected put(path: string, data: Uint8Array, stat: Stat): void {
    const interest = this.#reported.interest(path);
    if (interest === "data") this.#reported.put(path, data, stat);
    else if (interest === "name") this.#reported.name(path);
  }

  /** Takes a deletion that did not come from an event. */
  protected gone(path: string): void {
    if (this.#reported.interest(path) === "none") return;
    this.#reads.forget(path);
    this.#reported.remove(path);
  }

  /** Marks a path whose state must be read. */
  protected dirty(path: string): void {
    // During a gap nothing needs to be marked: the walk reads every path.
    if (this.#ready && this.#reported.interest(path) !== "none") this.#reads.live(path);
  }

  /** Whether a subclass keeps this event back, to call `dirty`, `put` or `gone` for its path later. */
  protected parks(_event: SourceEvent): boolean {
    return false;
  }

  /** Called when events may have been missed. Events that `parks` kept back can be dropped, because the walk reads their paths. */
  protected onGap(): void {}

  protected get ended(): boolean {
    return this.#ended;
  }

  /** Whether the path is the root or below it. */
  protected covers(path: string): boolean {
    const { root } = this;
    if (root === "/" || path === root) return true;
    return path.length > root.length && path[root.length] === "/" && path.startsWith(root);
  }

  #event(event: SourceEvent): void {
    if (this.#ended || !this.#ready) return;
    const { type, path } = event;
    const interest: Interest = this.#reported.interest(path);
    if (interest === "none" || this.parks(event)) return;
    if (type === "deleted") this.gone(path);
    else if (interest === "data") this.#reads.live(path);
    // Where only the name matters, an event says everything and no read is needed.
    else if (type === "created") this.#reported.name(path);
  }

  #fetch(path: string, done: () => void): void {
    if (this.#reported.interest(path) === "data") {
      this.#source.get(path, (error, found) => {
        if (this.#readAnswered(path, error, found !== undefined, done) && found !== undefined)
          this.#reported.put(path, found.data, found.stat);
      });
    } else {
      this.#source.stat(path, (error, stat) => {
        if (this.#readAnswered(path, error, stat !== undefined, done) && stat !== undefined)
          this.#reported.name(path);
      });
    }
  }

  /** What both kinds of read have in common. False: there is nothing more to report. */
  #readAnswered(path: string, error: Error | undefined, found: boolean, done: () => void): boolean {
    if (this.#ended) return false;
    if (error !== undefined) this.#failed(error);
    else if (!found) this.#reported.remove(path);
    done();
    return error === undefined;
  }

  /** A reconnect within the session is reported by `#stands`, when the watch stands again. Until then everything counts as missed. */
  #session(session: { readonly state: string; readonly epoch: number }): void {
    if (session.state === "connected" && session.epoch === this.#epoch) return;
    if (session.state === "closed") this.end();
    else if (session.state !== "connected") this.#gap();
  }

  /** The watch is set: from now on no event is missed. The walk finds what changed before. */
  #stands(): void {
    if (this.#ended) return;
    const { epoch } = this.#source.session();
    const first = this.#epoch < 0;
    this.#epoch = epoch;
    this.#gap();
    this.#ready = true;
    const { clock, random, resyncSpreadMs } = this.#options;
    // The first comparison is not spread: a process waits for it at its start.
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

  /** Events may have been missed: the work in progress is worth nothing, and the owner is told once. */
  #gap(): void {
    this.#ready = false;
    this.#timer?.cancel();
    this.onGap();
    this.#abandon();
    this.#reportGap();
  }

  #reportGap(): void {
    if (this.#open) return;
    this.#open = true;
    this.#reported.gap();
  }

  #abandon(): void {
    this.#reads.clear();
    if (!this.#walking) return;
    this.#walking = false;
    // The callers that waited for the abandoned walk wait for the next one.
    this.#waiters.unshift(...this.#walk.waiters);
    this.#walk.waiters = [];
  }

  /** Starts a walk. A walk that `resync` asked for is reported without a "gap", because no event was missed. */
  #begin(): void {
    this.#timer?.cancel();
    this.#walking = true;
    this.#walk.waiters = this.#waiters;
    this.#waiters = [];
    const { waiters } = this.#walk;
    if (waiters.length === 0) return this.#walk.begin(this.root);
    // Callers of `resync` want what others wrote before their call, and the server may be behind.
    this.#source.sync(this.root, (error) => {
      if (this.#ended || !this.#walking || this.#walk.waiters !== waiters) return;
      if (error === undefined) this.#walk.begin(this.root);
      else this.#failed(error);
    });
  }

  /** The last read of a walk was answered. */
  #walked(): void {
    if (this.#ended || !this.#walking) return;
    this.#walking = false;
    this.#open = false;
    const { waiters } = this.#walk;
    this.#walk.waiters = [];
    this.#reported.endWalk();
    this.#first.resolve();
    for (const waiter of waiters) waiter.resolve();
    if (this.#waiters.length > 0 && this.#ready) this.#begin();
  }

  /**
   * A read failed. When the connection broke, the session's change reports the gap anyway. Otherwise the cache is incomplete until a new
   * walk, which starts after a delay.
   */
  #failed(error: Error): void {
    if (this.#ended || !this.#ready || this.#options.isForbidden(error)) return;
    this.#abandon();
    this.#reportGap();
    this.#later(RETRY_MS, this.#options.clock);
  }
}
