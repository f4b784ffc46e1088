import { Fifo } from "./fifo.ts";

/** Live work follows an event; background work is part of a walk and waits for it. */
export type Priority = "live" | "background";

/** Keeps a bounded number of reads in flight at once. */
export class FetchQueue {
  readonly #limit: number;
  readonly #live = new Fifo<() => Promise<void>>();
  readonly #background = new Fifo<() => Promise<void>>();
  #inFlight = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Reads that have not been sent. */
  get waiting(): number {
    return this.#live.length + this.#background.length;
  }

  /** `read` is called when there is room, perhaps at once. What it returns must not reject. */
  add(priority: Priority, read: () => Promise<void>): void {
    (priority === "live" ? this.#live : this.#background).push(read);
    this.#fill();
  }

  #fill(): void {
    while (this.#inFlight < this.#limit) {
      const read = this.#live.shift() ?? this.#background.shift();
      if (read === undefined) return;
      this.#inFlight++;
      read().then(this.#ended);
    }
  }

  readonly #ended = (): void => {
    this.#inFlight--;
    this.#fill();
  };
}
