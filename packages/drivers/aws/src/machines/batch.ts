import type { Clock } from "@nodeyard/driver";

/** How ids are sent in batches. */
export interface BatchOptions {
  readonly clock: Clock;
  /** Most ids of one call. */
  readonly most: number;
  /** Ids that are added within these milliseconds share a call. */
  readonly gatherMs: number;
  /** Resolves to errors by id, for ids that the service refused. Rejects when the call failed as a whole. */
  send(ids: readonly string[]): Promise<ReadonlyMap<string, unknown>>;
  /** Whether a whole call may have failed because of one id. Then the other ids are sent again without it. */
  isOfOne(error: unknown): boolean;
}

/** A caller of `add`. Several may wait for one id, such as a removal and a sweep. */
interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Collects ids for calls that take many. Deletions of machines often come together, and each call costs a turn at the rate limit.
 * It has no signal: a caller that gives up leaves its id in the call, which is harmless for a deletion.
 */
export class Batch {
  readonly #options: BatchOptions;
  /** Ids of the next call, with those who wait for them. */
  #gathered = new Map<string, Waiting[]>();
  /** Runs from the first id of a batch; undefined while nothing is gathered. */
  #timer: { cancel(): void } | undefined;

  constructor(options: BatchOptions) {
    this.#options = options;
  }

  /** Resolves when the service accepted the call with this id; rejects with the id's own error. */
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

  /** Sends ids and settles their callers. Never rejects. */
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
      // One id makes the call fail for all. Halving finds it in few calls.
      const middle = Math.ceil(ids.length / 2);
      await Promise.all([this.#send(ids.slice(0, middle), waiting), this.#send(ids.slice(middle), waiting)]);
    }
  }
}
