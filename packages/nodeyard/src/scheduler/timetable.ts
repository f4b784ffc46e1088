import { Heap } from "@nodeyard/runtime";

interface Entry {
  readonly at: number;
  readonly key: string;
}

/** Stale entries that are put up with before they are swept, beside as many as there are keys. */
const STALE_KEPT = 64;

/** Keys with the time at which something is due for them; the earliest is found at once. */
export class Timetable {
  readonly #due = new Map<string, Entry>();
  /** Entries that `#due` does not have any more are stale. */
  readonly #heap = new Heap<Entry>((a, b) => a.at - b.at);

  set(key: string, at: number): void {
    if (this.#due.get(key)?.at === at) return;
    const entry = { at, key };
    this.#due.set(key, entry);
    this.#heap.push(entry);
    this.#sweep();
  }

  delete(key: string): void {
    if (this.#due.delete(key)) this.#sweep();
  }

  get(key: string): number | undefined {
    return this.#due.get(key)?.at;
  }

  /** When the first key is due. */
  next(): number | undefined {
    for (let first = this.#heap.peek(); first !== undefined; first = this.#heap.peek()) {
      if (this.#due.get(first.key) === first) return first.at;
      this.#heap.pop();
    }
    return undefined;
  }

  /** Removes and returns a key that is due at `now`; undefined when there is none. */
  take(now: number): string | undefined {
    const at = this.next();
    if (at === undefined || at > now) return undefined;
    const { key } = this.#heap.pop()!;
    this.#due.delete(key);
    return key;
  }

  /** Nodes come and go by the thousand long before they are too old: what is left of them must not wait for its time. */
  #sweep(): void {
    if (this.#heap.size > 2 * this.#due.size + STALE_KEPT)
      this.#heap.keep((entry) => this.#due.get(entry.key) === entry);
  }
}
