/** A set from which a random item, or a certain one, is removed at a cost that does not depend on its size. */
export class RandomPool<T> {
  readonly #items: T[] = [];
  readonly #places = new Map<T, number>();

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    this.#places.set(item, this.#items.push(item) - 1);
  }

  delete(item: T): void {
    const place = this.#places.get(item);
    const last = this.#items.at(-1);
    if (place === undefined || last === undefined) return;
    this.#items[place] = last;
    this.#places.set(last, place);
    this.#items.pop();
    this.#places.delete(item);
  }

  /** `share` in [0, 1) selects the item. */
  take(share: number): T {
    const item = this.#items[Math.floor(share * this.#items.length)]!;
    this.delete(item);
    return item;
  }
}
