/** A binary heap. `peek` takes constant time, `push` and `pop` take the logarithm of the size. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #compare: (a: T, b: T) => number;

  /** `compare` is negative when `a` comes before `b`. Equal items come in any order. */
  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    const items = this.#items;
    let index = items.push(item) - 1;
    while (index > 0) {
      const parent = (index - 1) >>> 1;
      if (this.#compare(items[parent]!, item) <= 0) break;
      items[index] = items[parent]!;
      index = parent;
    }
    items[index] = item;
  }

  pop(): T | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (items.length > 0) this.#sink(last!, 0);
    return first;
  }

  /** Drops the items that `wanted` refuses, in linear time. */
  keep(wanted: (item: T) => boolean): void {
    const items = this.#items;
    let kept = 0;
    for (const item of items) if (wanted(item)) items[kept++] = item;
    items.length = kept;
    for (let index = (kept >>> 1) - 1; index >= 0; index--) this.#sink(items[index]!, index);
  }

  #sink(item: T, from: number): void {
    const items = this.#items;
    let index = from;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && this.#compare(items[child + 1]!, items[child]!) < 0) child++;
      if (this.#compare(items[child]!, item) >= 0) break;
      items[index] = items[child]!;
      index = child;
    }
    items[index] = item;
  }
}
