import type { Change, Table } from "./table.ts";

/** Filter and order of a list. */
export interface Order<T> {
  readonly keeps: (row: T) => boolean;
  /** Rows with equal values are ordered by id. */
  readonly value: (row: T) => string | number;
  readonly descending: boolean;
}

interface Place<T> {
  readonly id: string;
  readonly row: T;
  readonly value: string | number;
}

/** Share of changed rows from which a complete sort is faster than single moves. */
const MANY = 0.25;

/** Filtered and sorted rows of a table. A change moves only the rows that changed. */
export class Ordered<T> {
  readonly #table: Table<T>;
  readonly #order: Order<T>;
  #places: Place<T>[] = [];
  readonly #values = new Map<string, string | number>();

  constructor(table: Table<T>, order: Order<T>) {
    this.#table = table;
    this.#order = order;
    this.#rebuild();
  }

  get length(): number {
    return this.#places.length;
  }

  at(index: number): { readonly id: string; readonly row: T } | undefined {
    return this.#places[index];
  }

  /** -1 when the row is not in the list. */
  indexOf(id: string): number {
    const value = this.#values.get(id);
    return value === undefined ? -1 : this.#find(value, id);
  }

  /** Returns whether the list has changed. */
  apply(changes: readonly Change<T>[]): boolean {
    if (changes.length > 20 && changes.length > this.#places.length * MANY) return this.#rebuild();
    let changed = false;
    for (const { id, after } of changes) {
      const at = this.indexOf(id);
      const place = after !== undefined && this.#order.keeps(after) ? this.#place(id, after) : undefined;
      if (at < 0 && place === undefined) continue;
      changed = true;
      if (at >= 0 && place?.value === this.#places[at]!.value) {
        this.#places[at] = place;
        continue;
      }
      if (at >= 0) this.#places.splice(at, 1);
      this.#values.delete(id);
      if (place === undefined) continue;
      this.#places.splice(this.#find(place.value, id), 0, place);
      this.#values.set(id, place.value);
    }
    return changed;
  }

  #rebuild(): true {
    this.#places = [];
    this.#values.clear();
    for (const [id, row] of this.#table.entries()) {
      if (!this.#order.keeps(row)) continue;
      const place = this.#place(id, row);
      this.#places.push(place);
      this.#values.set(id, place.value);
    }
    this.#places.sort((one, other) => this.#compare(one.value, one.id, other));
    return true;
  }

  #place(id: string, row: T): Place<T> {
    return { id, row, value: this.#order.value(row) };
  }

  /** Index of the row, or where it would be inserted. */
  #find(value: string | number, id: string): number {
    let low = 0;
    let high = this.#places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#compare(value, id, this.#places[middle]!) > 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compare(value: string | number, id: string, other: Place<T>): number {
    const byValue = value === other.value ? 0 : value < other.value ? -1 : 1;
    if (byValue !== 0) return this.#order.descending ? -byValue : byValue;
    return id === other.id ? 0 : id < other.id ? -1 : 1;
  }
}
