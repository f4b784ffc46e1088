/** First size, and the size after `take`. */
const FIRST = 64;

/** A first-in, first-out queue in a circular array whose size is a power of two. `Array.shift` would be O(n). */
export class Ring<T> {
  #items: (T | undefined)[] = new Array(FIRST).fill(undefined);
  /** Size of the array minus 1, with which an index wraps around. */
  #mask = FIRST - 1;
  /** Index of the oldest item. */
  #head = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(item: T): void {
    if (this.#size > this.#mask) this.#grow();
    this.#items[(this.#head + this.#size) & this.#mask] = item;
    this.#size++;
  }

  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const item = this.#items[this.#head];
    // So that the item can be collected.
    this.#items[this.#head] = undefined;
    this.#head = (this.#head + 1) & this.#mask;
    this.#size--;
    return item;
  }

  peek(): T | undefined {
    return this.#size === 0 ? undefined : this.#items[this.#head];
  }

  /** A copy of the items, oldest first. */
  toArray(): T[] {
    const all: T[] = [];
    for (let i = 0; i < this.#size; i++) all.push(this.#items[(this.#head + i) & this.#mask] as T);
    return all;
  }

  /** Empties the queue and returns its items, oldest first. */
  take(): T[] {
    const all = this.toArray();
    this.#items = new Array(FIRST).fill(undefined);
    this.#mask = FIRST - 1;
    this.#head = 0;
    this.#size = 0;
    return all;
  }

  #grow(): void {
    const all = this.toArray();
    const room = (this.#mask + 1) * 2;
    this.#items = new Array(room).fill(undefined);
    for (let i = 0; i < all.length; i++) this.#items[i] = all[i];
    this.#mask = room - 1;
    this.#head = 0;
  }
}
