import type { State } from "../core/record.ts";
import { BusyError } from "../errors.ts";
import { inTurn } from "../in-turn.ts";

/** What a change leads to, and what its caller gets. */
export interface Change<T> {
  readonly state: State;
  readonly result: T;
}

/** Changes that may wait; more are refused. */
const MAX_WAITING = 256;

/**
 * The state of a node and the one way to change it: changes are decided one after another, and each is durable before
 * it is in force and before its caller hears of it. Nothing slow happens in between but the write itself.
 */
export class Mutations {
  #state: State;
  #revision = 0;
  #waiting = 0;
  readonly #turn = inTurn();
  readonly #save: (state: State) => Promise<void>;

  constructor(state: State, save: (state: State) => Promise<void>) {
    this.#state = state;
    this.#save = save;
  }

  get state(): State {
    return this.#state;
  }

  /** Grows with each change. */
  get revision(): number {
    return this.#revision;
  }

  /** `decide` throws to change nothing. Rejects with what it throws, BusyError or StoreWriteError. */
  change<T>(decide: (state: State) => Change<T>): Promise<T> {
    if (this.#waiting >= MAX_WAITING)
      return Promise.reject(new BusyError(`${MAX_WAITING} changes wait for the disk already; try again`));
    this.#waiting += 1;
    const run = this.#turn(async () => {
      const { state, result } = decide(this.#state);
      if (state !== this.#state) {
        await this.#save(state);
        this.#state = state;
        this.#revision += 1;
      }
      return result;
    });
    return run.finally(() => {
      this.#waiting -= 1;
    });
  }

  /** Resolves when every change so far has been decided. */
  async settled(): Promise<void> {
    await this.#turn(async () => undefined);
  }
}
