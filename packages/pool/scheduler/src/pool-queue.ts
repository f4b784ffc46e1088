import { SortedQueue } from "./sorted-queue.ts";
import { SortedQueues } from "./sorted-queues.ts";

/** A queue in order, also indexed by label, so that a request for a label is found without a walk over the ones before it. */
export class PoolQueue<
  T extends { readonly id: string; readonly record: { readonly nodeTypes: readonly string[] } },
> {
  readonly #all: SortedQueue<T>;
  /** Most questions are about requests that are not in, and need no search. */
  readonly #ids = new Set<string>();
  /** By label: those of the queue that want it. */
  readonly #lines: SortedQueues<T>;

  constructor(compare: (a: T, b: T) => number) {
    this.#all = new SortedQueue(compare);
    this.#lines = new SortedQueues(compare);
  }

  get size(): number {
    return this.#all.size;
  }

  /** The item at a place, from 0; cheap near the front. */
  at(index: number): T | undefined {
    return this.#all.at(index);
  }

  /** Its place from 0; -1: it is not in. */
  indexOf(item: T): number {
    return this.has(item) ? this.#all.indexOf(item) : -1;
  }

  has(item: T): boolean {
    return this.#ids.has(item.id);
  }

  /** False when it is in already. */
  add(item: T): boolean {
    if (!this.#all.add(item)) return false;
    this.#ids.add(item.id);
    for (const label of new Set(item.record.nodeTypes)) this.#lines.add(label, item);
    return true;
  }

  /** False when it was not in. */
  delete(item: T): boolean {
    if (!this.#ids.delete(item.id)) return false;
    this.#all.delete(item);
    for (const label of new Set(item.record.nodeTypes)) this.#lines.delete(label, item);
    return true;
  }

  /** The first `most` that want a label. */
  line(label: string, most: number): readonly T[] {
    const line = this.#lines.of(label);
    const first: T[] = [];
    for (let index = 0; index < most; index++) {
      const item = line.at(index);
      if (item === undefined) break;
      first.push(item);
    }
    return first;
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#all[Symbol.iterator]();
  }
}
