import { abortable, backoff, type DriverContext, DriverError, deadline, sleep } from "@nodeyard/driver";
import type { Nodes } from "./nodes.ts";
import { makerAlive, thisMaker } from "./process.ts";
import type { SavedState, StateFacts, States } from "./states.ts";

/** Pause between two looks at a state that another process makes, milliseconds. */
const POLL_MS = 200;
/** First and longest pause after a failure, milliseconds. */
const RETRY_MS = 60_000;
const LONGEST_RETRY_MS = 3_600_000;

/** A guest to save: `run` starts it in the folder of that name, saves it into `draft`, and returns its facts. */
export interface SaveOrder {
  readonly key: string;
  /** Time limit of making the state, milliseconds, with the wait for another process that makes it. */
  readonly limitMs: number;
  run(name: string, draft: SavedState, signal: AbortSignal): Promise<StateFacts>;
}

/** Failures of a key in a row. No attempt is made before `until`. */
interface Failure {
  readonly count: number;
  /** Monotonic time, milliseconds. */
  readonly until: number;
}

/**
 * Makes each saved state once, however many machines need it, in this process and in others with the same folder. After a failure the next
 * attempt waits for a growing time, in which machines boot normally.
 */
export class Saving {
  readonly #guests: Nodes;
  readonly #states: States;
  readonly #context: DriverContext;
  /** States that this process makes or waits for, by key. They go on when their callers give up. */
  readonly #underWay = new Map<string, Promise<SavedState>>();
  /** Failures by key, of this process only. */
  readonly #failed = new Map<string, Failure>();
  readonly #closed = new AbortController();

  constructor(guests: Nodes, states: States, context: DriverContext) {
    this.#guests = guests;
    this.#states = states;
    this.#context = context;
  }

  /** Rejects with the reason when there is no state and none will be made for some time. */
  async get(order: SaveOrder, signal: AbortSignal): Promise<SavedState> {
    const failed = this.#failed.get(order.key);
    if (failed !== undefined && this.#context.clock.monotonic() < failed.until)
      throw new DriverError("transient", `saving failed ${failed.count} times; will retry later`);
    const underWay = this.#underWay.get(order.key) ?? this.#start(order);
    return abortable(underWay, signal);
  }

  /** Reports a state from which a machine could not continue. It is made again; after repeated failures only later. */
  async spoiled(key: string): Promise<void> {
    await this.#states.forget(key);
    // Of several machines that used the state at the same time, only the first report counts.
    const { until = 0 } = this.#failed.get(key) ?? {};
    if (this.#context.clock.monotonic() >= until) this.#fail(key);
  }

  /** Removes guests of launchers that died while saving them, because no machine may need their state any more. */
  async tidy(signal: AbortSignal): Promise<void> {
    for (const key of await this.#guests.names()) {
      const { maker } = (await this.#guests.wanted(key)) ?? {};
      if (maker === undefined || !(await makerAlive(maker))) await this.#clear(key, signal);
    }
  }

  /** Reports that a machine has continued from the state: resets the count of failures. */
  proven(key: string): void {
    this.#failed.delete(key);
  }

  close(): void {
    this.#closed.abort(new DriverError("transient", "saved states are closed"));
  }

  /** Begins to get a state, for all callers of this process. A failure counts once, however many wait. */
  #start(order: SaveOrder): Promise<SavedState> {
    const { key, limitMs } = order;
    const late = () => new DriverError("timeout", `no guest could be saved within ${limitMs} ms`);
    const limit = deadline(this.#context.clock, limitMs, late, this.#closed.signal);
    const getting = this.#get(order, limit.signal)
      .catch((error) => {
        if (!this.#closed.signal.aborted) this.#fail(key);
        throw limit.signal.aborted ? limit.signal.reason : error;
      })
      .finally(() => {
        limit.cancel();
        this.#underWay.delete(key);
      });
    this.#underWay.set(key, getting);
    getting.catch(() => {});
    return getting;
  }

  /** The state, made by this process or another: the one that claims the guest's folder makes it. */
  async #get(order: SaveOrder, signal: AbortSignal): Promise<SavedState> {
    const { key } = order;
    for (;;) {
      const there = await this.#states.get(key, signal);
      if (there !== undefined) return there;
      if (await this.#guests.claim(key, { hostname: "parked", resources: {}, maker: await thisMaker() }))
        break;
      const { maker } = (await this.#guests.wanted(key)) ?? {};
      // The launcher that made the guest has died: remove the guest. The next round of the loop claims the folder.
      if (maker === undefined || !(await makerAlive(maker))) await this.#clear(key, signal);
      else await sleep(this.#context.clock, POLL_MS, signal);
    }
    try {
      await this.#states.add(key, (draft) => order.run(key, draft, signal));
    } finally {
      await this.#clear(key, new AbortController().signal);
    }
    const made = await this.#states.get(key, signal);
    if (made === undefined)
      throw new DriverError("transient", "the state was removed right after it was made");
    return made;
  }

  /** Ends the guest and removes its folder, which releases the claim. */
  async #clear(key: string, signal: AbortSignal): Promise<void> {
    await this.#guests.end(key, this.#context.clock, signal);
    await this.#guests.discard(key);
  }

  #fail(key: string): void {
    const { clock, random } = this.#context;
    const count = (this.#failed.get(key)?.count ?? 0) + 1;
    const wait = backoff(random, count - 1, RETRY_MS, LONGEST_RETRY_MS);
    this.#failed.set(key, { count, until: clock.monotonic() + wait });
  }
}
