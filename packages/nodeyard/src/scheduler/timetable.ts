/** Keys with the time at which something is due for them; the earliest is found at once (binary heap, lazy removal). */
export class Timetable {
  readonly #due = new Map<string, number>();
  readonly #heap: { readonly at: number; readonly key: string }[] = [];

  set(key: string, at: number): void {
    if (this.#due.get(key) === at) return;
    this.#due.set(key, at);
    this.#push({ at, key });
  }

  delete(key: string): void {
    this.#due.delete(key);
    if (this.#due.size === 0) this.#heap.length = 0;
  }

  get(key: string): number | undefined {
    return this.#due.get(key);
  }

  /** When the first key is due. */
  next(): number | undefined {
    for (let top = this.#heap[0]; top !== undefined; top = this.#heap[0]) {
      if (this.#due.get(top.key) === top.at) return top.at;
      this.#pop();
    }
    return undefined;
  }

  /** Removes and returns a key that is due at `now`; undefined when there is none. */
  take(now: number): string | undefined {
    const at = this.next();
    if (at === undefined || at > now) return undefined;
    const { key } = this.#pop()!;
    this.#due.delete(key);
    return key;
  }

  #push(entry: { readonly at: number; readonly key: string }): void {
    const heap = this.#heap;
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const parent = (index - 1) >>> 1;
      if (heap[parent]!.at <= entry.at) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = entry;
  }

  #pop(): { readonly at: number; readonly key: string } | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]!.at < heap[child]!.at) child++;
      if (heap[child]!.at >= last.at) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return top;
  }
}
