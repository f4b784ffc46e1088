/** How many nodes of each pool are being deleted, by any launcher: capacity that comes back without a decision here. */
export class Leaving {
  readonly #pool = new Map<string, string>();
  readonly #count = new Map<string, number>();

  /** `pool` undefined: the node is not on its way out. */
  set(node: string, pool: string | undefined): void {
    const before = this.#pool.get(node);
    if (before === pool) return;
    if (before !== undefined) {
      const left = this.count(before) - 1;
      if (left > 0) this.#count.set(before, left);
      else this.#count.delete(before);
    }
    if (pool === undefined) this.#pool.delete(node);
    else {
      this.#pool.set(node, pool);
      this.#count.set(pool, this.count(pool) + 1);
    }
  }

  has(node: string): boolean {
    return this.#pool.has(node);
  }

  count(pool: string): number {
    return this.#count.get(pool) ?? 0;
  }
}
