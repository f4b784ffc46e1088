import type { Clock, Timer } from "./clock.ts";
import { microtasksDone } from "./edge/turn.ts";
import { NodeyardError } from "./errors.ts";
import { Heap } from "./heap.ts";

/** Default limit of timers at one instant. A simulation of ten thousand requests stays far below it. */
const AT_ONE_INSTANT = 100_000;
/** For this many of the last timers before the limit, the caller is recorded for the error message. */
const NAMED = 100;

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
  /** Fired or cancelled. The entry remains in the heap until it is removed. */
  over: boolean;
}

/** Timers keep setting new timers for the same instant, so virtual time cannot advance. */
export class TimeStandsStill extends NodeyardError {
  constructor(at: number, fired: number, setBy: readonly string[]) {
    const counts = new Map<string, number>();
    for (const place of setBy) counts.set(place, (counts.get(place) ?? 0) + 1);
    const places = [...counts].sort((a, b) => b[1] - a[1]).map(([place, count]) => `\n  ${count} x ${place}`);
    super(
      "runtime.time_stands_still",
      `${fired} timers fired at ${at} ms and time did not move on: something waits 0 ms in a loop. The last were set by:${places.join("")}`,
    );
  }
}

/**
 * A clock that moves only by `advance`. Timers fire in order of time, then of creation. Between two timers all ready promise
 * callbacks run, so that the work started by one timer is done before the next timer fires.
 */
export class VirtualClock implements Clock {
  #now: number;
  #mono = 0;
  #order = 0;
  #pending = 0;
  /** Timers fired at the present instant. */
  #fired = 0;
  readonly #most: number;
  readonly #setBy: string[] = [];
  readonly #timers = new Heap<Entry>((a, b) => a.at - b.at || a.order - b.order);

  /** `atOneInstant`: limit of timers that fire before time moves on. */
  constructor(startEpochMs = 1_700_000_000_000, atOneInstant = AT_ONE_INSTANT) {
    this.#now = startEpochMs;
    this.#most = atOneInstant;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#mono;
  }

  setTimer(ms: number, fn: () => void): Timer {
    // Capturing a stack costs more than a timer, so it is done only near the limit.
    if (ms <= 0 && this.#fired > this.#most - NAMED) this.#setBy.push(caller());
    const entry = { at: this.#mono + Math.max(0, ms), order: this.#order++, fn, over: false };
    this.#timers.push(entry);
    this.#pending++;
    return { cancel: () => this.#end(entry) };
  }

  /** Number of timers that have not fired. */
  get pending(): number {
    return this.#pending;
  }

  /** Milliseconds until the next timer fires; Infinity: there is none. */
  get untilNext(): number {
    return (this.#next()?.at ?? Number.POSITIVE_INFINITY) - this.#mono;
  }

  /** Moves only the wall clock, as an administrator can. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** Moves time forward by `ms` and fires the timers that are due. Rejects with TimeStandsStill. */
  async advance(ms: number): Promise<void> {
    const end = this.#mono + ms;
    await microtasksDone();
    for (let next = this.#next(); next !== undefined && next.at <= end; next = this.#next()) {
      this.#moveTo(next.at);
      if (this.#fired >= this.#most) throw new TimeStandsStill(this.#mono, this.#fired, this.#setBy);
      this.#fired++;
      this.#end(next);
      next.fn();
      await microtasksDone();
    }
    this.#moveTo(end);
  }

  #moveTo(at: number): void {
    if (at <= this.#mono) return;
    this.#now += at - this.#mono;
    this.#mono = at;
    this.#fired = 0;
    this.#setBy.length = 0;
  }

  /** Ends a timer. Most timers are cancelled (deadlines of calls that end in time), so the heap is compacted before they pile up. */
  #end(entry: Entry): void {
    if (entry.over) return;
    entry.over = true;
    this.#pending--;
    if (this.#timers.size > 2 * this.#pending + 64) this.#timers.keep(({ over }) => !over);
  }

  #next(): Entry | undefined {
    for (let first = this.#timers.peek(); first !== undefined; first = this.#timers.peek()) {
      if (!first.over) return first;
      this.#timers.pop();
    }
    return undefined;
  }
}

/** The callers of `setTimer`, innermost first: several frames, because the innermost ones (`sleep`) do not show the loop. */
function caller(): string {
  const frames = (new Error().stack ?? "").split("\n").slice(3, 7);
  return frames.map((frame) => frame.trim().replace(/^at /, "")).join(" < ") || "(unknown)";
}
