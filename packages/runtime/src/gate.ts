/** Lets so many pieces of work go on at once; the others wait in the order in which they came. */
export class Gate {
  #free: number;
  readonly #mayWait: (waiting: number) => void;
  readonly #queue = new Set<() => void>();

  /** `mayWait` throws where so many wait already that one more is refused. */
  constructor(atOnce: number, mayWait: (waiting: number) => void = () => {}) {
    this.#free = atOnce;
    this.#mayWait = mayWait;
  }

  /** Settles as `work` does, or rejects with the signal's reason while it waits. A turn is given back however the work ended. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#turn(signal);
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    this.#mayWait(this.#queue.size);
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#queue.delete(enter);
        reject(signal?.reason);
      };
      const enter = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      this.#queue.add(enter);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** The turn goes straight to who waits longest, so that nobody who comes meanwhile is quicker. */
  #next(): void {
    const [first] = this.#queue;
    if (first === undefined) {
      this.#free++;
      return;
    }
    this.#queue.delete(first);
    first();
  }
}
