/** Ids by key, where an id may stand under several keys. Empty keys take no room. */
export class MultiIndex {
  readonly #ids = new Map<string, Set<string>>();

  add(key: string, id: string): void {
    const ids = this.#ids.get(key);
    if (ids === undefined) this.#ids.set(key, new Set([id]));
    else ids.add(id);
  }

  delete(key: string, id: string): void {
    const ids = this.#ids.get(key);
    if (ids === undefined) return;
    ids.delete(id);
    if (ids.size === 0) this.#ids.delete(key);
  }

  /** From one key to another, undefined standing for none; free where nothing changes. */
  move(id: string, from: string | undefined, to: string | undefined): void {
    if (from === to) return;
    if (from !== undefined) this.delete(from, id);
    if (to !== undefined) this.add(to, id);
  }

  /** The ids under `key`; the set is live and must not be kept over a change. */
  get(key: string): ReadonlySet<string> {
    return this.#ids.get(key) ?? none;
  }

  /** How many ids stand under `key`. */
  count(key: string): number {
    return this.#ids.get(key)?.size ?? 0;
  }

  /** Keys with at least one id. */
  keys(): IterableIterator<string> {
    return this.#ids.keys();
  }
}

const none: ReadonlySet<string> = new Set();
