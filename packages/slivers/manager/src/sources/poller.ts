import { backoff, type Clock, deadline, messageOf, type Random, type Timer } from "@nodeyard/runtime";
import type { ManagerLog } from "../manager/manager.ts";

/** A failure that stays the same is logged again after this many times. */
const AGAIN = 60;

/** Log of a source's failures: each new failure, every AGAIN-th repetition, and the recovery. */
export class FailureLog {
  readonly #source: string;
  readonly #log: ManagerLog;
  /** The message that was logged last; empty while the source works. */
  #last = "";
  #count = 0;

  constructor(source: string, log: ManagerLog) {
    this.#source = source;
    this.#log = log;
  }

  failed(error: unknown): void {
    const text = messageOf(error);
    this.#count = text === this.#last ? this.#count + 1 : 1;
    this.#last = text;
    if (this.#count === 1) this.#log.error(`${this.#source}: ${text}`);
    else if (this.#count % AGAIN === 0)
      this.#log.error(`${this.#source}: ${text} (${this.#count} times in a row)`);
  }

  worked(): void {
    if (this.#count > 0) this.#log.info(`${this.#source}: works again`);
    this.#last = "";
    this.#count = 0;
  }
}

/** Options of `Poller`. All times are in milliseconds. */
export interface PollerOptions {
  /** For log lines. */
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ManagerLog;
  /** Between polls. Up to half as much again is added at random, so that the nodes of a site do not poll at the same moment. */
  readonly period: number;
  /** Until the first poll. */
  readonly first: number;
  /** The first pause after a failure; it doubles up to `period`. Absent: as after a success. */
  readonly retry?: number;
  /** For one poll and everything it causes. */
  readonly limit: number;
  /** Makes the reason with which a poll is aborted. */
  readonly aborted: (message: string) => Error;
  readonly poll: (signal: AbortSignal) => Promise<void>;
}

/** The options of a poller that the daemon knows. */
export type PollerTools = Pick<PollerOptions, "clock" | "random" | "log" | "period">;

/** Polls one source until `close`. A failed poll changes nothing. */
export class Poller {
  readonly #options: PollerOptions;
  /** Aborts at `close`, and with it the poll in progress. */
  readonly #stop = new AbortController();
  readonly #failures: FailureLog;
  /** Failures since the last success, for the back-off. */
  #inRow = 0;
  #timer: Timer | undefined;
  #polling: Promise<void> | undefined;

  constructor(options: PollerOptions) {
    this.#options = options;
    this.#failures = new FailureLog(options.name, options.log);
  }

  /** Called once. */
  start(): void {
    if (this.#options.first === 0) this.#begin();
    else this.#arm(this.#options.first);
  }

  /** Resolves when the poll in progress has ended. No poll begins after this call. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#stop.abort(this.#options.aborted("the sliver manager is stopping"));
    await this.#polling;
  }

  #arm(wait: number): void {
    if (this.#stop.signal.aborted) return;
    this.#timer = this.#options.clock.setTimer(wait, () => this.#begin(), { background: true });
  }

  /** One poll, then the timer for the next. Polls never overlap. */
  #begin(): void {
    const { random, period, retry } = this.#options;
    const next = () => period * (1 + random.float() / 2);
    this.#polling = this.#poll()
      .then(
        () => {
          this.#inRow = 0;
          this.#failures.worked();
          return next();
        },
        (error: unknown) => {
          if (!this.#stop.signal.aborted) this.#failures.failed(error);
          if (retry === undefined) return next();
          return Math.min(period, backoff(random, this.#inRow++, retry, period));
        },
      )
      .then((wait) => {
        this.#polling = undefined;
        this.#arm(wait);
      });
  }

  async #poll(): Promise<void> {
    const { clock, limit, aborted, poll } = this.#options;
    const late = () => aborted(`no answer within ${limit / 1000} s`);
    using timer = deadline(clock, limit, late, this.#stop.signal);
    await poll(timer.signal);
  }
}
