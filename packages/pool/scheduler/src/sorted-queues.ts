import { SortedQueue } from "./sorted-queue.ts";

/** A queue as it is read. Live: do not keep it across a change. */
export type Queue<T> = Omit<SortedQueue<T>, "add" | "delete">;

/** Sorted queues by key. None is empty: what has gone leaves nothing behind. */
export class SortedQueues<T> {
  readonly #queues = new Map<string, SortedQueue<T>>();
  readonly #none: SortedQueue<T>;
  readonly #compare: (a: T, b: T) => number;

  /** `compare` as for `SortedQueue`. */
  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
    this.#none = new SortedQueue(compare);
  }

  /** How many keys have anything. */
  get size(): number {
    return this.#queues.size;
  }

  of(key: string): Queue<T> {
    return this.#queues.get(key) ?? this.#none;
  }

  /** False when it is in already. */
  add(key: string, item: T): boolean {
    const queue = this.#queues.get(key) ?? new SortedQueue(this.#compare);
    this.#queues.set(key, queue);
    return queue.add(item);
  }

  /** False when it was not in. */
  delete(key: string, item: T): boolean {
    const queue = this.#queues.get(key);
    if (queue?.delete(item) !== true) return false;
    if (queue.size === 0) this.#queues.delete(key);
    return true;
  }

  [Symbol.iterator](): IterableIterator<[string, Queue<T>]> {
    return this.#queues[Symbol.iterator]();
  }
}
