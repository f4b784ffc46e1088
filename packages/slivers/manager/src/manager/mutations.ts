import { Batches } from "@nodeyard/runtime";
import type { State } from "../core/record.ts";
import { BusyError } from "../errors.ts";

/** The new state, and the result for the caller. */
export interface Change<T> {
  readonly state: State;
  readonly result: T;
}

/** Changes that may wait. Further ones are refused. */
const MAX_WAITING = 256;
/** Waiting changes that slivers asked for. The other places are kept for syncs, the launcher and controllers. */
const MAX_OF_SLIVERS = 128;

interface Waiting {
  readonly decide: (state: State) => Change<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly sliver: string | undefined;
}

/**
 * Holds the state of a node and is the only way to change it. Changes are decided one after another. Each is durable before it takes effect
 * and before its caller is answered, so that a crash never takes an answer back. Changes that arrive during a write are decided after it
 * and share the next write.
 */
export class Mutations {
  #state: State;
  #revision = 0;
  readonly #batches = new Batches<Waiting>((batch) => this.#write(batch));
  readonly #save: (state: State) => Promise<void>;

  constructor(state: State, save: (state: State) => Promise<void>) {
    this.#state = state;
    this.#save = save;
  }

  get state(): State {
    return this.#state;
  }

  /** Grows with each decided change, also with one whose write fails later. */
  get revision(): number {
    return this.#revision;
  }

  /**
   * `decide` throws in order to change nothing. `sliver`: the sliver that made this call; each has one place in the queue. Rejects with
   * what `decide` throws, BusyError or StoreWriteError.
   */
  change<T>(decide: (state: State) => Change<T>, sliver?: string): Promise<T> {
    const busy = this.#busy(sliver);
    if (busy !== undefined) return Promise.reject(new BusyError(`${busy}; try again`));
    return new Promise<unknown>((resolve, reject) => {
      this.#batches.add({ decide, resolve, reject, sliver });
    }) as Promise<T>;
  }

  /** Resolves when every change so far is durable or refused. */
  settled(): Promise<void> {
    return this.#batches.settled();
  }

  #busy(sliver: string | undefined): string | undefined {
    const { waiting } = this.#batches;
    if (waiting.length >= MAX_WAITING) return `${MAX_WAITING} changes wait for the disk already`;
    if (sliver === undefined) return undefined;
    if (waiting.some((one) => one.sliver === sliver)) return `a change of ${sliver} waits already`;
    const ofSlivers = waiting.filter((one) => one.sliver !== undefined).length;
    return ofSlivers < MAX_OF_SLIVERS ? undefined : `${MAX_OF_SLIVERS} changes of slivers wait already`;
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    let next = this.#state;
    const decided: { readonly waiting: Waiting; readonly result: unknown }[] = [];
    for (const waiting of batch) {
      try {
        const { state, result } = waiting.decide(next);
        if (state !== next) this.#revision += 1;
        next = state;
        decided.push({ waiting, result });
      } catch (error) {
        waiting.reject(error);
      }
    }
    try {
      if (next !== this.#state) await this.#save(next);
      this.#state = next;
      for (const { waiting, result } of decided) waiting.resolve(result);
    } catch (error) {
      for (const { waiting } of decided) waiting.reject(error);
    }
  }
}
