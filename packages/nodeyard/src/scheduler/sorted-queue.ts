/**
 * Items in an order that never changes while they are in. Insertion and removal search by bisection; taking from the
 * front is cheap. `compare` must never return 0 for two different items.
 */
export class SortedQueue<T> {
  readonly #items: T[] = [];
  readonly #compare: (a: T, b: T) => number;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#items.length;
  }

  at(index: number): T | undefined {
    return this.#items[index];
  }

  /** False when it is in already. */
  add(item: T): boolean {
    const index = this.#lowerBound(item);
    const found = this.#items[index];
    if (found !== undefined && this.#compare(found, item) === 0) return false;
    if (index === this.#items.length) this.#items.push(item);
    else this.#items.splice(index, 0, item);
    return true;
  }

  has(item: T): boolean {
    const found = this.#items[this.#lowerBound(item)];
    return found !== undefined && this.#compare(found, item) === 0;
  }

  /** False when it was not in. */
  delete(item: T): boolean {
    const index = this.#lowerBound(item);
    const found = this.#items[index];
    if (found === undefined || this.#compare(found, item) !== 0) return false;
    if (index === 0) this.#items.shift();
    else this.#items.splice(index, 1);
    return true;
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#items[Symbol.iterator]();
  }

  #lowerBound(item: T): number {
    let low = 0;
    let high = this.#items.length;
    if (high > 0 && this.#compare(this.#items[high - 1]!, item) < 0) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(this.#items[middle]!, item) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
