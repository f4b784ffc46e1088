/** A change of a table: the row before and after; undefined where there was or is none. */
export interface Change<T> {
  readonly id: string;
  readonly before: T | undefined;
  readonly after: T | undefined;
}

/** Rows by id. Who listens is told of all changes of one batch at once. */
export class Table<T> {
  readonly #rows = new Map<string, T>();
  readonly #listeners = new Set<(changes: readonly Change<T>[]) => void>();

  get size(): number {
    return this.#rows.size;
  }

  get(id: string): T | undefined {
    return this.#rows.get(id);
  }

  entries(): IterableIterator<[string, T]> {
    return this.#rows.entries();
  }

  values(): IterableIterator<T> {
    return this.#rows.values();
  }

  /** Applies the last state of each id; undefined removes it. */
  apply(states: ReadonlyMap<string, T | undefined>): void {
    const changes: Change<T>[] = [];
    for (const [id, after] of states) {
      const before = this.#rows.get(id);
      if (before === after) continue;
      if (after === undefined) this.#rows.delete(id);
      else this.#rows.set(id, after);
      changes.push({ id, before, after });
    }
    if (changes.length > 0) for (const listener of [...this.#listeners]) listener(changes);
  }

  /** Returns how to stop. */
  listen(listener: (changes: readonly Change<T>[]) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
