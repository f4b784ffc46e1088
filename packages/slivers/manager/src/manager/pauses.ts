import { backoff, type Clock, messageOf, type Random } from "@nodeyard/runtime";
import type { Task } from "../core/plan.ts";
import type { Outcome } from "../isolation/executor.ts";

/** The last failure of an incarnation's task, and the time of the next attempt. */
export interface Failure {
  readonly error: unknown;
  readonly attempts: number;
  /** Monotonic milliseconds. */
  readonly nextTry: number;
}

/** Back-off between attempts, milliseconds. */
const BASE = 1_000;
const CAP = 300_000;

/** Failed tasks by incarnation, and when each is tried again. */
export class Retries {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #failures = new Map<number, Failure>();

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  note({ task, error }: Outcome): void {
    if (error === undefined) {
      this.#failures.delete(task.incarnation);
      return;
    }
    const attempts = (this.#failures.get(task.incarnation)?.attempts ?? 0) + 1;
    const nextTry = this.#clock.monotonic() + backoff(this.#random, attempts - 1, BASE, CAP);
    this.#failures.set(task.incarnation, { error, attempts, nextTry });
  }

  of(incarnation: number): Failure | undefined {
    return this.#failures.get(incarnation);
  }

  rests(incarnation: number): boolean {
    const failure = this.#failures.get(incarnation);
    return failure !== undefined && failure.nextTry > this.#clock.monotonic();
  }

  /** Milliseconds until the next attempt is due; undefined when no task has to wait. */
  get next(): number | undefined {
    const now = this.#clock.monotonic();
    const waits = [...this.#failures.values()].map(({ nextTry }) => nextTry - now).filter((ms) => ms > 0);
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  /** Forgets incarnations that no longer exist. On request, the others are tried again at once. */
  prune(alive: ReadonlySet<number>): void {
    for (const incarnation of this.#failures.keys())
      if (!alive.has(incarnation)) this.#failures.delete(incarnation);
  }

  text(incarnation: number): { code: string; message: string; attempts: number } | undefined {
    const failure = this.#failures.get(incarnation);
    if (failure === undefined) return undefined;
    const code = (failure.error as { code?: unknown } | null)?.code;
    return {
      code: typeof code === "string" ? code : "sliver.back_end",
      message: messageOf(failure.error),
      attempts: failure.attempts,
    };
  }
}

/** Two starts of a sliver with less than this between them count as one after the other, milliseconds. */
const CALM = 600_000;
/** The longest pause before a start of a sliver that ended by itself. */
const LONGEST_REST = 60_000;

/**
 * Pauses before a sliver that was started again, and has ended, is started once more: one that ends by itself must not have the machine's
 * places for starts all the time. Times are monotonic milliseconds.
 */
export class Restarts {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #starts = new Map<
    number,
    { readonly count: number; readonly at: number; readonly rests: number }
  >();

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  note({ task, ran }: Outcome): void {
    if (task.steps.includes("create") || !ran.some(({ step }) => step === "start")) return;
    const at = this.#clock.monotonic();
    const last = this.#starts.get(task.incarnation);
    const count = last !== undefined && at - last.at < CALM ? last.count + 1 : 0;
    const pause = count === 0 ? 0 : backoff(this.#random, count - 1, BASE, LONGEST_REST);
    this.#starts.set(task.incarnation, { count, at, rests: at + pause });
  }

  rests(incarnation: number): boolean {
    return (this.#starts.get(incarnation)?.rests ?? 0) > this.#clock.monotonic();
  }

  /** When the next pause of these incarnations is over; Infinity when none rests. */
  next(incarnations: Iterable<number>): number {
    const resting = [...incarnations].filter((one) => this.rests(one));
    return Math.min(...resting.map((one) => this.#starts.get(one)!.rests));
  }

  prune(alive: ReadonlySet<number>): void {
    for (const incarnation of this.#starts.keys())
      if (!alive.has(incarnation)) this.#starts.delete(incarnation);
  }
}

/**
 * Delays of starts at the first sync after a boot: all slivers are stopped, and starting them at once would overload the machine.
 * Times are monotonic milliseconds.
 */
export class SpacedStarts {
  readonly #spacing: number;
  readonly #times = new Map<number, number>();
  #first = true;

  /** `spacing` in milliseconds; 0 means no delays. */
  constructor(spacing: number) {
    this.#spacing = spacing;
  }

  /**
   * To be called with the tasks of each sync. Forgets slivers whose time has come and slivers that are not to be started any more:
   * otherwise `next` would request a sync for them again and again.
   */
  see(tasks: readonly Task[], now: number): void {
    const starting = new Set(
      tasks.flatMap(({ steps, incarnation }) => (steps.includes("start") ? [incarnation] : [])),
    );
    if (this.#first)
      for (const [order, incarnation] of [...starting].entries())
        this.#times.set(incarnation, now + order * this.#spacing);
    this.#first = false;
    for (const [incarnation, time] of this.#times)
      if (time <= now || !starting.has(incarnation)) this.#times.delete(incarnation);
  }

  rests(incarnation: number): boolean {
    return this.#times.has(incarnation);
  }

  /** Time of the next delayed start, always later than the last `see`. Infinity when none is delayed. */
  get next(): number {
    return Math.min(...this.#times.values());
  }
}

/** Milliseconds after which an operation on a file is told as one that waits. */
const LONG = 30_000;

/** Finds operations that wait from how many are under way at each look. Times are monotonic milliseconds. */
export class LongOperations {
  /** At n: since when more than n have been under way at every look. */
  readonly #since: number[] = [];

  see(underWay: number, now: number): void {
    this.#since.length = Math.min(this.#since.length, underWay);
    while (this.#since.length < underWay) this.#since.push(now);
  }

  count(now: number): number {
    return this.#since.filter((since) => now - since >= LONG).length;
  }
}
