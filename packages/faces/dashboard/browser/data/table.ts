/** A change of a row: its state before and after. Undefined when it did not exist or does not exist any more. */
export interface Change<T> {
  readonly id: string;
  readonly before: T | undefined;
  readonly after: T | undefined;
}

/** Rows by id. Listeners get all changes of a batch in one call. */
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

  /** Sets the last state of each id; undefined removes the row. */
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

  /** Returns a function that removes the listener. */
  listen(listener: (changes: readonly Change<T>[]) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
