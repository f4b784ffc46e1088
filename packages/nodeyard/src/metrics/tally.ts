/** How many there are, by two keys. What has become zero takes no room. */
export class Tally {
  readonly #counts = new Map<string, Map<string, number>>();

  add(first: string, second: string, by: number): void {
    const row = this.#counts.get(first) ?? new Map<string, number>();
    const count = (row.get(second) ?? 0) + by;
    if (count === 0) row.delete(second);
    else row.set(second, count);
    if (row.size === 0) this.#counts.delete(first);
    else this.#counts.set(first, row);
  }

  get(first: string, second: string): number {
    return this.#counts.get(first)?.get(second) ?? 0;
  }

  firsts(): Iterable<string> {
    return this.#counts.keys();
  }
}
