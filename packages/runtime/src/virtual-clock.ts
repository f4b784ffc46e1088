import type { Clock, Timer } from "./clock.ts";
import { microtasksDone } from "./edge/turn.ts";
import { Heap } from "./heap.ts";

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
  /** Fired or cancelled: what is left of it in the heap is passed over. */
  over: boolean;
}

/**
 * A clock that moves only when told to. Timers fire in order of time, then of creation; between two timers the
 * microtask queue is drained, so that promise chains started by one timer run before the next fires.
 */
export class VirtualClock implements Clock {
  #now: number;
  #mono = 0;
  #order = 0;
  #pending = 0;
  readonly #timers = new Heap<Entry>((a, b) => a.at - b.at || a.order - b.order);

  constructor(startEpochMs = 1_700_000_000_000) {
    this.#now = startEpochMs;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#mono;
  }

  setTimer(ms: number, fn: () => void): Timer {
    const entry = { at: this.#mono + Math.max(0, ms), order: this.#order++, fn, over: false };
    this.#timers.push(entry);
    this.#pending++;
    return { cancel: () => this.#end(entry) };
  }

  /** Number of timers that have not fired. */
  get pending(): number {
    return this.#pending;
  }

  /** Moves the wall clock alone, as an administrator or a leap does. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** Moves time forward by `ms`, firing what falls due. */
  async advance(ms: number): Promise<void> {
    const end = this.#mono + ms;
    await microtasksDone();
    for (let next = this.#next(); next !== undefined && next.at <= end; next = this.#next()) {
      this.#moveTo(next.at);
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
  }

  /** Most timers are cancelled (deadlines of what ended in time), so those must not pile up until their time has come. */
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
