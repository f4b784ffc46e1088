import type { Clock, Random, Timer } from "@nodeyard/runtime";
import type { Feed, FeedOptions, Op, OpResult, Session } from "../contract.ts";
import { NotAllowed, TreeClosed, type TreeError } from "../errors.ts";
import type { OwnWrites } from "../remote/own-writes.ts";
import type { Port, PortEvent } from "../remote/port.ts";
import { Reads } from "./reads.ts";
import { ReportedState } from "./reported-state.ts";
import { Walk } from "./walk.ts";

const DEFAULT_CONCURRENCY = 256;
/** How long a feed waits before it compares itself again after a read failed for no fault of the connection. */
const RETRY_MS = 1_000;
const NOTHING = new Uint8Array(0);

export interface RemoteFeedOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly resyncSpreadMs: number;
  readonly left: () => void;
}

/**
 * A feed over a connection: events say which paths changed, reads say how, and our own writes are taken from their
 * replies (docs/contract/write-order.md, "Own writes"). It never gets two contradicting states of a path: while a write of ours is in
 * flight on it, events on it are parked.
 */
export class RemoteFeed implements Feed {
  readonly synced: Promise<void>;
  readonly #first = Promise.withResolvers<void>();
  readonly #port: Port;
  readonly #own: OwnWrites;
  readonly #root: string;
  readonly #options: RemoteFeedOptions;
  readonly #told: ReportedState;
  readonly #reads: Reads;
  readonly #walk: Walk;
  /** Paths with events that wait for replies to writes of ours, and the last write that was begun before the first event. */
  readonly #parked = new Map<string, number>();
  #waiters: PromiseWithResolvers<void>[] = [];
  #unwatch: () => Promise<void> = async () => {};
  #unsubscribe: () => void = () => {};
  #timer: Timer | undefined;
  #epoch = -1;
  /** The connection stands and the watch with it: events are complete, reads make sense. */
  #ready = false;
  #walking = false;
  /** Between a gap and its synced; a feed begins in one. */
  #open = true;
  #ended = false;

  constructor(port: Port, own: OwnWrites, root: string, feed: FeedOptions, options: RemoteFeedOptions) {
    this.#port = port;
    this.#own = own;
    this.#root = root;
    this.#options = options;
    this.#told = new ReportedState(feed);
    this.#reads = new Reads(
      feed.concurrency ?? DEFAULT_CONCURRENCY,
      (path, done) => this.#fetch(path, done),
      () => this.#walked(),
    );
    this.#walk = new Walk(port, this.#told, this.#reads, feed, (error) => this.#failed(error));
    this.synced = this.#first.promise;
    // Whoever closes a feed early need not have waited for it.
    this.synced.catch(() => undefined);
  }

  start(): void {
    this.#unsubscribe = this.#port.onSession((session) => this.#session(session));
    this.#unwatch = this.#port.watch(
      this.#root,
      (event) => this.#event(event),
      () => this.#stands(),
    );
  }

  resync(): Promise<void> {
    if (this.#ended) return Promise.reject(new TreeClosed(`resync of the feed of ${this.#root}`));
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
    const closed = new TreeClosed(`the feed of ${this.#root}`);
    this.#first.reject(closed);
    for (const waiter of [...this.#waiters, ...this.#walk.waiters]) waiter.reject(closed);
    this.#waiters = [];
    this.#options.left();
  }

  /** A write of ours was answered: with results, or with the error that leaves us to find out. */
  ownWrite(ops: readonly Op[], results: readonly OpResult[] | undefined, error: TreeError | undefined): void {
    if (this.#ended) return;
    for (let index = 0; index < ops.length; index++) {
      const op = ops[index] as Op;
      if (op.op === "check") continue;
      const result = results?.[index];
      const path = result?.op === "create" ? result.path : op.path;
      if (!this.#covers(path)) continue;
      if (result !== undefined) {
        // What is parked was before the reply on the wire, so the reply knows better.
        this.#parked.delete(path);
        this.#apply(path, op, result);
      } else if (error?.outcome === "unknown" && !(op.op === "create" && op.sequential)) {
        this.#dirty(path);
      }
    }
    for (const [path, write] of this.#parked) {
      if (this.#own.inFlight(path, true, write)) continue;
      this.#parked.delete(path);
      this.#dirty(path);
    }
  }

  #apply(path: string, op: Op, result: OpResult): void {
    const interest = this.#told.interest(path);
    if (interest === "none") return;
    if (result.op === "delete") this.#gone(path);
    else if (interest === "name") this.#told.name(path);
    else if (result.op !== "check" && op.op !== "delete" && op.op !== "check")
      this.#told.put(path, op.data ?? NOTHING, result.stat);
  }

  #event({ type, path }: PortEvent): void {
    if (this.#ended || !this.#ready) return;
    const interest = this.#told.interest(path);
    if (interest === "none") return;
    if (this.#own.inFlight(path, type === "created")) this.#park(path);
    else if (type === "deleted") this.#gone(path);
    else if (interest === "data") this.#reads.live(path);
    else if (type === "created") this.#told.name(path);
  }

  /** Later events on the path do not make the first one wait longer: once its time has come the newest state is read. */
  #park(path: string): void {
    if (!this.#parked.has(path)) this.#parked.set(path, this.#own.last);
  }

  #gone(path: string): void {
    this.#reads.forget(path);
    this.#told.remove(path);
  }

  /** What is at a path must be asked. */
  #dirty(path: string): void {
    // After a gap the walk asks for everything.
    if (this.#ready && this.#told.interest(path) !== "none") this.#reads.live(path);
  }

  #fetch(path: string, done: () => void): void {
    if (this.#told.interest(path) === "data") {
      this.#port.get(path, (error, found) => {
        if (this.#readAnswered(path, error, found !== undefined, done) && found !== undefined)
          this.#told.put(path, found.data, found.stat);
      });
    } else {
      this.#port.stat(path, (error, stat) => {
        if (this.#readAnswered(path, error, stat !== undefined, done) && stat !== undefined)
          this.#told.name(path);
      });
    }
  }

  #readAnswered(path: string, error: TreeError | undefined, found: boolean, done: () => void): boolean {
    if (this.#ended) return false;
    if (error !== undefined) this.#failed(error);
    else if (!found) this.#told.remove(path);
    done();
    return error === undefined;
  }

  #session(session: Session): void {
    if (session.state === "connected" && session.epoch === this.#epoch) return;
    if (session.state === "closed") this.end();
    else if (session.state !== "connected") this.#gap();
  }

  /** The watch stands: from here on events are complete, and what was before is found by comparing. */
  #stands(): void {
    if (this.#ended) return;
    const { epoch } = this.#port.session();
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
    this.#parked.clear();
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
    this.#walk.begin(this.#root);
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
  #failed(error: TreeError): void {
    if (this.#ended || !this.#ready || error instanceof NotAllowed) return;
    this.#abandon();
    this.#tellGap();
    this.#later(RETRY_MS, this.#options.clock);
  }

  #covers(path: string): boolean {
    const root = this.#root;
    if (root === "/" || path === root) return true;
    return path.length > root.length && path[root.length] === "/" && path.startsWith(root);
  }
}
