import { backoff, type Clock, messageOf, type Random } from "@nodeyard/runtime";
import type { Task } from "../core/plan.ts";
import type { Outcome } from "../isolation/executor.ts";

/** The last failure of an incarnation, and when its task is tried again. */
export interface Failure {
  readonly error: unknown;
  readonly attempts: number;
  /** Monotonic milliseconds. */
  readonly nextTry: number;
}

/** Back-off between tries, milliseconds. */
const BASE = 1_000;
const CAP = 300_000;

/** What did not work, per incarnation, and when it is tried again. */
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

  /** Milliseconds until the next one may be tried again; undefined when none has to wait. */
  get next(): number | undefined {
    const now = this.#clock.monotonic();
    const waits = [...this.#failures.values()].map(({ nextTry }) => nextTry - now).filter((ms) => ms > 0);
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  /** Forgets what is about incarnations that are no more, and lets the others be tried at once when asked to. */
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

/**
 * At the first sync after a boot everything is stopped: it starts one after another. Who starts later than the first,
 * and when. Times are monotonic milliseconds.
 */
export class SpacedStarts {
  readonly #spacing: number;
  readonly #times = new Map<number, number>();
  #first = true;

  /** Milliseconds; 0: as fast as may be. */
  constructor(spacing: number) {
    this.#spacing = spacing;
  }

  /**
   * To be called with the tasks of each sync. Whose time has come is forgotten, and so is who is not to be started any
   * more: nothing would be done for either, and `next` must not ask for it.
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

  /** When the next one may start, always after the last `see`; Infinity when none waits. */
  get next(): number {
    return Math.min(...this.#times.values());
  }
}
