import type { ZnodeRow } from "../engine/index.ts";
import { StoreFailed, type TreeError } from "../errors.ts";
import type { Batch, SessionRow, Store } from "./store.ts";

/** Called without an error when the awaited changes are durable, with an error when they may not be. */
export type Released = (error: TreeError | undefined) => void;

interface Held {
  readonly mark: number;
  readonly released: Released;
}

/**
 * Group commit, and the gate that holds every result back until it is durable (rule 10).
 *
 * The core applies changes in memory at once; the committer collects them by path. While one batch is being written, the
 * next one collects, so that many writers share one fsync. Everything computed from memory (the result of a write or a
 * read, an event) passes `release`, which holds it until all changes that it can show are durable. Results leave in the
 * order in which they were computed, so a reader's replies and events stay in zxid order.
 *
 * After a failed batch the memory is ahead of the disk, so every held and every later result fails, until a restart.
 */
export class Committer {
  readonly #store: Store;
  readonly #onFailure: (error: TreeError) => void;
  #zxid = 0n;
  /** The rows of the collecting batch by path. Only the last state of a path is written, however often it changed. */
  #puts = new Map<string, ZnodeRow | undefined>();
  #sessions = new Map<bigint, SessionRow | undefined>();
  /** Number of the batch that collects now. A mark is the number of the batch that must become durable. */
  #gathering = 1;
  #durable = 0;
  /** The collecting batch has a change. */
  #dirty = false;
  /** A batch is being written. */
  #writing = false;
  /** A write is queued as a microtask, so that all changes of one turn of the event loop are in one batch. */
  #scheduled = false;
  /** Results that wait, in order, from index `#heldFrom` on. */
  #held: Held[] = [];
  #heldFrom = 0;
  #failure: TreeError | undefined;
  #idle: (() => void)[] = [];
  /** Number of batches that became durable. */
  batches = 0;

  constructor(store: Store, onFailure: (error: TreeError) => void) {
    this.#store = store;
    this.#onFailure = onFailure;
  }

  get failure(): TreeError | undefined {
    return this.#failure;
  }

  /** Records the state of a path after a change; `undefined` deletes the path. */
  znode(path: string, row: ZnodeRow | undefined): void {
    this.#puts.set(path, row);
  }

  session(id: bigint, row: SessionRow | undefined): void {
    this.#sessions.set(id, row);
  }

  /** Ends one change. It is now part of the collecting batch. */
  mark(zxid: bigint): void {
    this.#zxid = zxid;
    this.#dirty = true;
    if (this.#writing || this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#write());
  }

  /** Calls `released` when every change so far is durable, which may be at once. */
  release(released: Released): void {
    if (this.#failure !== undefined) {
      released(this.#failure);
      return;
    }
    // A result waits behind earlier ones even when its own state is durable: results must leave in the order of their computation.
    const mark = this.#dirty ? this.#gathering : this.#gathering - 1;
    if (mark <= this.#durable && this.#heldFrom === this.#held.length) released(undefined);
    else this.#held.push({ mark, released });
  }

  /** Resolves when nothing is left to write, or when the store has failed. */
  settled(): Promise<void> {
    if (this.#failure !== undefined || (!this.#dirty && !this.#writing)) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #write(): void {
    this.#scheduled = false;
    if (this.#failure !== undefined || !this.#dirty || this.#writing) return;
    const number = this.#gathering++;
    const batch = this.#takeBatch();
    this.#writing = true;
    this.#store.commit(batch).then(
      () => this.#onDurable(number),
      (error: unknown) => this.#fail(error),
    );
  }

  #takeBatch(): Batch {
    const puts: ZnodeRow[] = [];
    const deletes: string[] = [];
    for (const [path, row] of this.#puts) {
      if (row === undefined) deletes.push(path);
      else puts.push(row);
    }
    const sessionPuts: SessionRow[] = [];
    const sessionDeletes: bigint[] = [];
    for (const [id, row] of this.#sessions) {
      if (row === undefined) sessionDeletes.push(id);
      else sessionPuts.push(row);
    }
    this.#puts = new Map();
    this.#sessions = new Map();
    this.#dirty = false;
    return { zxid: this.#zxid, puts, deletes, sessionPuts, sessionDeletes };
  }

  #onDurable(number: number): void {
    this.#writing = false;
    this.#durable = number;
    this.batches++;
    // Starts the next batch before the callers of this one run, so that the disk works while they do.
    if (this.#dirty) this.#write();
    this.#letGo();
    if (!this.#dirty && !this.#writing) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #letGo(): void {
    while (this.#heldFrom < this.#held.length) {
      const next = this.#held[this.#heldFrom]!;
      if (next.mark > this.#durable) break;
      this.#heldFrom++;
      tell(next, undefined);
    }
    if (this.#heldFrom === this.#held.length) {
      this.#held = [];
      this.#heldFrom = 0;
    } else if (this.#heldFrom > 4096) {
      this.#held.splice(0, this.#heldFrom);
      this.#heldFrom = 0;
    }
  }

  #fail(error: unknown): void {
    this.#writing = false;
    const failure = error instanceof StoreFailed ? error : new StoreFailed("a commit", "unknown", error);
    this.#failure = failure;
    for (const held of this.#held.splice(this.#heldFrom)) tell(held, failure);
    this.#held = [];
    this.#heldFrom = 0;
    for (const resolve of this.#idle.splice(0)) resolve();
    this.#onFailure(failure);
  }
}

function tell(held: Held, error: TreeError | undefined): void {
  try {
    held.released(error);
  } catch (thrown) {
    // A listener that throws has a bug. The error must surface, but must not keep other callers waiting for ever.
    queueMicrotask(() => {
      throw thrown;
    });
  }
}
