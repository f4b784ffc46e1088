import type { Change } from "./table.ts";

/** Number of rows by group and state. Updated by changes; rows are never counted again. */
export class Counts<T> {
  readonly #groups: (row: T) => readonly string[];
  readonly #state: (row: T) => string;
  readonly #counts = new Map<string, Map<string, number>>();

  constructor(groups: (row: T) => readonly string[], state: (row: T) => string) {
    this.#groups = groups;
    this.#state = state;
  }

  apply(changes: readonly Change<T>[]): void {
    for (const { before, after } of changes) {
      if (before !== undefined) this.#add(before, -1);
      if (after !== undefined) this.#add(after, 1);
    }
  }

  /** By group and state. Groups without rows are missing. */
  get groups(): ReadonlyMap<string, ReadonlyMap<string, number>> {
    return this.#counts;
  }

  of(group: string): ReadonlyMap<string, number> {
    return this.#counts.get(group) ?? NONE;
  }

  #add(row: T, step: number): void {
    const state = this.#state(row);
    for (const group of this.#groups(row)) {
      const states = this.#counts.get(group) ?? new Map<string, number>();
      const count = (states.get(state) ?? 0) + step;
      if (count === 0) states.delete(state);
      else states.set(state, count);
      if (states.size === 0) this.#counts.delete(group);
      else this.#counts.set(group, states);
    }
  }
}

const NONE: ReadonlyMap<string, number> = new Map();
