/** Lets so many pieces of work go on at once; the others wait in the order in which they came. */
export class Gate {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  /** Resolves and rejects as `work` does. A turn is given back however the work ended. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.add(resolve));
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  /** The turn goes straight to who waits longest, so that nobody who comes meanwhile is quicker. */
  #next(): void {
    for (const wake of this.#waiting) {
      this.#waiting.delete(wake);
      wake();
      return;
    }
    this.#free++;
  }
}
