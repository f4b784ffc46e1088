/** Limits how many pieces of work run at once. Further ones wait, first come, first served. */
export class Gate {
  #free: number;
  readonly #mayWait: (waiting: number) => void;
  readonly #queue = new Set<() => void>();

  /** `mayWait` receives the number of waiting pieces and throws to refuse another one. */
  constructor(atOnce: number, mayWait: (waiting: number) => void = () => {}) {
    this.#free = atOnce;
    this.#mayWait = mayWait;
  }

  /** Settles like `work`, or rejects with the signal's reason while it waits. The next piece starts however `work` ends. */
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

  /** Passes the place directly to the longest waiting piece, so that a new piece cannot overtake it. */
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
