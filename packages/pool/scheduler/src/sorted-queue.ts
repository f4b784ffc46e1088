/** A chunk that grows longer is cut in two. Small enough that moving its items costs less than finding the place. */
const LONGEST = 256;

/**
 * Items in an order that never changes while they are in, in sorted chunks: insertion and removal search by bisection and
 * move at most one chunk's items, however many wait. `compare` must never return 0 for two different items.
 *
 * Each item also knows its chunk. In a long queue nearly every comparison reads an item that is in no cache of the processor, so a search
 * for the very object that was added compares nothing.
 */
export class SortedQueue<T> {
  /** None is empty. */
  readonly #chunks: T[][] = [];
  readonly #chunkByItem = new Map<T, T[]>();
  readonly #compare: (a: T, b: T) => number;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#chunkByItem.size;
  }

  /** Cheap near the front: that is where queues are read. */
  at(index: number): T | undefined {
    let left = index;
    for (const chunk of this.#chunks) {
      if (left < chunk.length) return chunk[left];
      left -= chunk.length;
    }
    return undefined;
  }

  /** The first that comes after an item, which need not be in. */
  after(item: T): T | undefined {
    const place = this.#chunkOf(item);
    const chunk = this.#chunks[place];
    if (chunk === undefined) return undefined;
    const index = this.#lowerBound(chunk, item);
    const found = chunk[index]!;
    if (this.#compare(found, item) > 0) return found;
    return chunk[index + 1] ?? this.#chunks[place + 1]?.[0];
  }

  /** The item behind all others. */
  last(): T | undefined {
    return this.#chunks.at(-1)?.at(-1);
  }

  /** False when it is in already. */
  add(item: T): boolean {
    const place = Math.min(this.#chunkOf(item), this.#chunks.length - 1);
    const chunk = this.#chunks[place] ?? [];
    if (place < 0) this.#chunks.push(chunk);
    const index = this.#lowerBound(chunk, item);
    const found = chunk[index];
    if (found !== undefined && this.#compare(found, item) === 0) return false;
    if (index === chunk.length) chunk.push(item);
    else chunk.splice(index, 0, item);
    this.#chunkByItem.set(item, chunk);
    if (chunk.length > LONGEST) this.#chunks.splice(place + 1, 0, this.#own(chunk.splice(LONGEST / 2)));
    return true;
  }

  has(item: T): boolean {
    const chunk = this.#chunks[this.#chunkOf(item)];
    const found = chunk?.[this.#lowerBound(chunk, item)];
    return found !== undefined && this.#compare(found, item) === 0;
  }

  /** Its place from 0; -1: it is not in. Costs a look at each chunk, not at each item. */
  indexOf(item: T): number {
    const place = this.#chunkOf(item);
    const chunk = this.#chunks[place];
    if (chunk === undefined) return -1;
    const index = this.#lowerBound(chunk, item);
    const found = chunk[index];
    if (found === undefined || this.#compare(found, item) !== 0) return -1;
    return this.#chunks.slice(0, place).reduce((sum, { length }) => sum + length, index);
  }

  /** False when it was not in. */
  delete(item: T): boolean {
    const chunk = this.#chunkByItem.get(item) ?? this.#chunks[this.#chunkOf(item)];
    if (chunk === undefined) return false;
    const same = chunk.indexOf(item);
    const index = same >= 0 ? same : this.#lowerBound(chunk, item);
    const found = chunk[index]!;
    if (found !== item && this.#compare(found, item) !== 0) return false;
    if (index === 0) chunk.shift();
    else chunk.splice(index, 1);
    this.#chunkByItem.delete(found);
    if (chunk.length <= LONGEST / 4) this.#tidy(chunk);
    return true;
  }

  /** The first that `wanted` accepts. */
  find(wanted: (item: T) => boolean): T | undefined {
    for (const chunk of this.#chunks) for (const item of chunk) if (wanted(item)) return item;
    return undefined;
  }

  *[Symbol.iterator](): IterableIterator<T> {
    for (const chunk of this.#chunks) yield* chunk;
  }

  /** Joins short neighbours: a long queue that shrinks would otherwise end as a long list of short chunks. */
  #tidy(chunk: T[]): void {
    const place = this.#chunks.indexOf(chunk);
    const next = this.#chunks[place + 1];
    if (chunk.length === 0) this.#chunks.splice(place, 1);
    else if (next !== undefined && chunk.length + next.length <= LONGEST / 2) {
      chunk.push(...next);
      this.#own(chunk);
      this.#chunks.splice(place + 1, 1);
    }
  }

  /** Notes that these items are in this chunk now. */
  #own(chunk: T[]): T[] {
    for (const item of chunk) this.#chunkByItem.set(item, chunk);
    return chunk;
  }

  /** The first chunk that ends with the item or later; their number when all end before. */
  #chunkOf(item: T): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(this.#chunks[middle]!.at(-1)!, item) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The index of the first item of a chunk that does not come before `item`. */
  #lowerBound(chunk: readonly T[], item: T): number {
    let low = 0;
    let high = chunk.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(chunk[middle]!, item) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** The first `most` of a queue. */
export function firstOf<T>(queue: Pick<SortedQueue<T>, "at">, most: number): readonly T[] {
  const first: T[] = [];
  for (let index = 0; index < most; index++) {
    const item = queue.at(index);
    if (item === undefined) break;
    first.push(item);
  }
  return first;
}
