import { ScanQueueFullError } from "./errors.ts";

/** At most `active` tasks run; at most `waiting` more wait, in order of arrival. */
export class Gate {
  readonly #active: number;
  readonly #waiting: number;
  readonly #queue = new Set<() => void>();
  #running = 0;

  constructor(active: number, waiting: number) {
    this.#active = active;
    this.#waiting = waiting;
  }

  /** Rejects with ScanQueueFullError, or with the signal's reason while it waits. */
  async run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#running < this.#active) this.#running++;
    else await this.#turn(signal);
    try {
      return await task();
    } finally {
      this.#pass();
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    if (this.#queue.size >= this.#waiting) {
      throw new ScanQueueFullError(`${this.#queue.size} scans wait already; try again later`);
    }
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

  /** Hands the place of a task that has ended to the first that waits. */
  #pass(): void {
    const [next] = this.#queue;
    if (next === undefined) {
      this.#running--;
      return;
    }
    this.#queue.delete(next);
    next();
  }
}
