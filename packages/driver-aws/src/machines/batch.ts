import type { Clock } from "@nodeyard/driver";

/** How a batch of ids is sent, and what one of them is refused with. */
export interface BatchOptions {
  readonly clock: Clock;
  /** Ids of one call, at most. */
  readonly most: number;
  /** Those that come within this time go together, milliseconds. */
  readonly gatherMs: number;
  /** Resolves with errors by id, for those that were refused; rejects when the call failed as a whole. */
  send(ids: readonly string[]): Promise<ReadonlyMap<string, unknown>>;
  /** Whether an error of a whole call may be about one id: the others are then sent without it. */
  isOfOne(error: unknown): boolean;
}

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Calls that take many ids, made once for all who have one: deletions of machines come in crowds. */
export class Batch {
  readonly #options: BatchOptions;
  #gathered = new Map<string, Waiting[]>();
  #timer: { cancel(): void } | undefined;

  constructor(options: BatchOptions) {
    this.#options = options;
  }

  /** Resolves when the call with this id has been taken; rejects with its own error. */
  add(id: string): Promise<void> {
    const { clock, gatherMs, most } = this.#options;
    return new Promise((resolve, reject) => {
      this.#gathered.set(id, [...(this.#gathered.get(id) ?? []), { resolve, reject }]);
      if (this.#gathered.size >= most) this.#flush();
      else this.#timer ??= clock.setTimer(gatherMs, () => this.#flush());
    });
  }

  #flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const gathered = this.#gathered;
    this.#gathered = new Map();
    void this.#send([...gathered.keys()], gathered);
  }

  async #send(ids: readonly string[], waiting: ReadonlyMap<string, readonly Waiting[]>): Promise<void> {
    const settle = (id: string, error?: unknown) => {
      for (const { resolve, reject } of waiting.get(id) ?? [])
        error === undefined ? resolve() : reject(error);
    };
    try {
      const refused = await this.#options.send(ids);
      for (const id of ids) settle(id, refused.get(id));
    } catch (error) {
      if (ids.length === 1 || !this.#options.isOfOne(error)) {
        for (const id of ids) settle(id, error);
        return;
      }
      // One of them spoils the call for all: halves find it in few calls.
      const middle = Math.ceil(ids.length / 2);
      await Promise.all([this.#send(ids.slice(0, middle), waiting), this.#send(ids.slice(middle), waiting)]);
    }
  }
}
