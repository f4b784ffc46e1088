import type { State } from "../core/record.ts";
import { BusyError } from "../errors.ts";

/** What a change leads to, and what its caller gets. */
export interface Change<T> {
  readonly state: State;
  readonly result: T;
}

/** Changes that may wait; more are refused. */
const MAX_WAITING = 256;
/** Of these, changes that slivers asked for: the others are kept for sync, the launcher and controllers. */
const MAX_OF_SLIVERS = 128;

interface Waiting {
  readonly decide: (state: State) => Change<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly sliver: string | undefined;
}

/**
 * The state of a node and the one way to change it: changes are decided one after another, and each is durable before
 * it is in force and before its caller hears of it. What comes during a write is decided after it and goes into the next one.
 */
export class Mutations {
  #state: State;
  #revision = 0;
  #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  readonly #save: (state: State) => Promise<void>;

  constructor(state: State, save: (state: State) => Promise<void>) {
    this.#state = state;
    this.#save = save;
  }

  get state(): State {
    return this.#state;
  }

  /** Grows with each change as it is decided; it may fail to become durable. */
  get revision(): number {
    return this.#revision;
  }

  /**
   * `decide` throws to change nothing. `sliver`: whose call this is; it has one place. Rejects with what `decide` throws, BusyError or
   * StoreWriteError.
   */
  change<T>(decide: (state: State) => Change<T>, sliver?: string): Promise<T> {
    const busy = this.#busy(sliver);
    if (busy !== undefined) return Promise.reject(new BusyError(`${busy}; try again`));
    const done = new Promise<unknown>((resolve, reject) => {
      this.#waiting.push({ decide, resolve, reject, sliver });
    });
    this.#running ??= this.#run();
    return done as Promise<T>;
  }

  /** Resolves when every change so far is durable or refused. */
  async settled(): Promise<void> {
    await this.#running;
  }

  #busy(sliver: string | undefined): string | undefined {
    const waiting = this.#waiting;
    if (waiting.length >= MAX_WAITING) return `${MAX_WAITING} changes wait for the disk already`;
    if (sliver === undefined) return undefined;
    if (waiting.some((one) => one.sliver === sliver)) return `a change of ${sliver} waits already`;
    const ofSlivers = waiting.filter((one) => one.sliver !== undefined).length;
    return ofSlivers < MAX_OF_SLIVERS ? undefined : `${MAX_OF_SLIVERS} changes of slivers wait already`;
  }

  async #run(): Promise<void> {
    // What is asked for in this turn goes together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      await this.#write(batch);
    }
    this.#running = undefined;
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
