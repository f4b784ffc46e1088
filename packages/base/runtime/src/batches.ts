/** Items that are worked on together: those that come in one turn of the event loop, then those that came during the work on others. */
export class Batches<T> {
  readonly #work: (batch: readonly T[]) => Promise<void>;
  #waiting: T[] = [];
  #running: Promise<void> | undefined;

  /** `work` must not reject. */
  constructor(work: (batch: readonly T[]) => Promise<void>) {
    this.#work = work;
  }

  /** Items that are not being worked on yet. */
  get waiting(): readonly T[] {
    return this.#waiting;
  }

  add(item: T): void {
    this.#waiting.push(item);
    this.#running ??= this.#run();
  }

  /** An item that is being worked on stays there. */
  remove(item: T): void {
    this.#waiting = this.#waiting.filter((one) => one !== item);
  }

  /** Resolves when the work on all items so far has ended. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // Items that are added in the same turn of the event loop go together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      await this.#work(batch);
    }
    this.#running = undefined;
  }
}
