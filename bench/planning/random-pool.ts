/** Things of which any is taken out, or a certain one: at the same cost however many there are. */
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

  /** `share` in [0, 1) says which. */
  take(share: number): T {
    const item = this.#items[Math.floor(share * this.#items.length)]!;
    this.delete(item);
    return item;
  }
}
