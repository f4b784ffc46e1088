import { SortedQueue } from "./sorted-queue.ts";

/** A queue in order, also indexed by label, so that a request for a label is found without a walk over the ones before it. */
export class PoolQueue<
  T extends { readonly id: string; readonly record: { readonly nodeTypes: readonly string[] } },
> {
  readonly #all: SortedQueue<T>;
  /** Most questions are about requests that are not in, and need no search. */
  readonly #ids = new Set<string>();
  readonly #lines = new Map<string, SortedQueue<T>>();
  readonly #compare: (a: T, b: T) => number;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
    this.#all = new SortedQueue(compare);
  }

  get size(): number {
    return this.#all.size;
  }

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
    for (const label of new Set(item.record.nodeTypes)) {
      const line = this.#lines.get(label) ?? new SortedQueue<T>(this.#compare);
      this.#lines.set(label, line);
      line.add(item);
    }
    return true;
  }

  /** False when it was not in. */
  delete(item: T): boolean {
    if (!this.#ids.delete(item.id)) return false;
    this.#all.delete(item);
    for (const label of new Set(item.record.nodeTypes)) {
      const line = this.#lines.get(label);
      line?.delete(item);
      if (line?.size === 0) this.#lines.delete(label);
    }
    return true;
  }

  /** The first `most` that want a label. */
  line(label: string, most: number): readonly T[] {
    const line = this.#lines.get(label);
    const first: T[] = [];
    for (let index = 0; index < most; index++) {
      const item = line?.at(index);
      if (item === undefined) break;
      first.push(item);
    }
    return first;
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#all[Symbol.iterator]();
  }
}
