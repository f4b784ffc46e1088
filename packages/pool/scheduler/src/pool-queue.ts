import { compareRequests } from "@nodeyard/model";
import { ShareQueue } from "./share-queue.ts";
import type { Shares } from "./shares.ts";
import { firstOf, SortedQueue } from "./sorted-queue.ts";
import { SortedQueues } from "./sorted-queues.ts";
import type { Waiting } from "./waits.ts";

/** Requests of one client that are looked at in one pass over those that wait, at most. */
const OF_ONE_CLIENT = 8;

/**
 * Requests in order, also indexed by label, so that a request for a label is found without a walk over the ones before it. With shares, a
 * second queue says whose turn it is.
 */
export class PoolQueue {
  readonly #all = new SortedQueue<Waiting>(compareRequests);
  /** Most questions are about requests that are not in, and need no search. */
  readonly #ids = new Set<string>();
  /** By label: those of the queue that want it. */
  readonly #lines = new SortedQueues<Waiting>(compareRequests);
  readonly #shares: Shares;
  readonly #inTurn: ShareQueue;

  /** Whether `shares` are on changes only while the queue is empty. */
  constructor(shares: Shares) {
    this.#shares = shares;
    this.#inTurn = new ShareQueue(shares);
  }

  get size(): number {
    return this.#all.size;
  }

  /** Whose turn it is. */
  get first(): Waiting | undefined {
    return this.#shares.on ? this.#inTurn.first : this.#all.at(0);
  }

  /** The first `most`, in turn. Lazy with shares: each request that is served changes whose turn it is. */
  inTurn(most: number): Iterable<Waiting> {
    return this.#shares.on ? this.#inTurn.inTurn(OF_ONE_CLIENT, most) : firstOf(this.#all, most);
  }

  /** Lets a request go first whatever others get and return, because something is kept for it. */
  pin(item: Waiting): void {
    if (this.#shares.on) this.#inTurn.pin(item);
  }

  /** Its place from 0; -1: it is not in, or nobody can say, because it depends on what others get and return. */
  indexOf(item: Waiting): number {
    return this.has(item) && !this.#shares.on ? this.#all.indexOf(item) : -1;
  }

  has(item: Waiting): boolean {
    return this.#ids.has(item.id);
  }

  /** False when it is in already. */
  add(item: Waiting): boolean {
    if (!this.#all.add(item)) return false;
    this.#ids.add(item.id);
    for (const label of new Set(item.record.nodeTypes)) this.#lines.add(label, item);
    if (this.#shares.on) this.#inTurn.add(item);
    return true;
  }

  /** False when it was not in. */
  delete(item: Waiting): boolean {
    if (!this.#ids.delete(item.id)) return false;
    this.#all.delete(item);
    for (const label of new Set(item.record.nodeTypes)) this.#lines.delete(label, item);
    if (this.#shares.on) this.#inTurn.delete(item);
    return true;
  }

  /** The first `most` that want a label, by age. */
  line(label: string, most: number): readonly Waiting[] {
    return firstOf(this.#lines.of(label), most);
  }

  /** By priority and age, whatever the shares are. */
  [Symbol.iterator](): IterableIterator<Waiting> {
    return this.#all[Symbol.iterator]();
  }
}
