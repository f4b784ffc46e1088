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

/** Ids of one call, which is sent when the batch is full or its time is over, and the errors of those that were refused. */
interface Gathered {
  readonly ids: Set<string>;
  readonly refused: Promise<ReadonlyMap<string, unknown>>;
  readonly flush: () => void;
}

/**
 * Collects ids for calls that take many. Deletions of machines often come together, and each call costs a turn at the rate limit.
 * It has no signal: a caller that gives up leaves its id in the call, which is harmless for a deletion.
 */
export class Batch {
  readonly #options: BatchOptions;
  #next: Gathered | undefined;

  constructor(options: BatchOptions) {
    this.#options = options;
  }

  /** Resolves when the service accepted the call with this id; rejects with the id's own error. */
  async add(id: string): Promise<void> {
    this.#next ??= this.#gather();
    const { ids, refused, flush } = this.#next;
    ids.add(id);
    if (ids.size >= this.#options.most) flush();
    const errors = await refused;
    if (errors.has(id)) throw errors.get(id);
  }

  #gather(): Gathered {
    const ids = new Set<string>();
    const { promise, resolve } = Promise.withResolvers<ReadonlyMap<string, unknown>>();
    const flush = () => {
      timer.cancel();
      this.#next = undefined;
      resolve(this.#send([...ids]));
    };
    const timer = this.#options.clock.setTimer(this.#options.gatherMs, flush);
    return { ids, refused: promise, flush };
  }

  /** Errors by id. Never rejects. */
  async #send(ids: readonly string[]): Promise<ReadonlyMap<string, unknown>> {
    try {
      return await this.#options.send(ids);
    } catch (error) {
      if (ids.length === 1 || !this.#options.isOfOne(error)) return new Map(ids.map((id) => [id, error]));
      // One id makes the call fail for all. Halving finds it in few calls.
      const middle = Math.ceil(ids.length / 2);
      const halves = [this.#send(ids.slice(0, middle)), this.#send(ids.slice(middle))];
      return new Map((await Promise.all(halves)).flatMap((errors) => [...errors]));
    }
  }
}
