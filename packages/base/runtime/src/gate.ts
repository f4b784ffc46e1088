/** Limits how many pieces of work run at once. Further ones wait, first come, first served; those that go ahead before all others. */
export class Gate {
  #free: number;
  readonly #mayWait: (waiting: number) => void;
  readonly #ahead = new Set<() => void>();
  readonly #queue = new Set<() => void>();

  /** `mayWait` receives the number of waiting pieces and throws to refuse another one. */
  constructor(atOnce: number, mayWait: (waiting: number) => void = () => {}) {
    this.#free = atOnce;
    this.#mayWait = mayWait;
  }

  /** Settles like `work`, or rejects with the signal's reason while it waits. The next piece starts however `work` ends. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal, ahead = false): Promise<T> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#turn(signal, ahead ? this.#ahead : this.#queue);
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  #turn(signal: AbortSignal | undefined, queue: Set<() => void>): Promise<void> {
    this.#mayWait(this.#ahead.size + this.#queue.size);
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        queue.delete(enter);
        reject(signal?.reason);
      };
      const enter = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      queue.add(enter);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Passes the place directly to the longest waiting piece, so that a new piece cannot overtake it. */
  #next(): void {
    const [first] = [...this.#ahead, ...this.#queue];
    if (first === undefined) {
      this.#free++;
      return;
    }
    this.#ahead.delete(first);
    this.#queue.delete(first);
    first();
  }
}
