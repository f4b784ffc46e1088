import { backoff, type Clock, messageOf, type Random } from "@nodeyard/runtime";
import type { Outcome } from "../isolation/index.ts";

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
export class Failures {
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
