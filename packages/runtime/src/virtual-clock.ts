import type { Clock, Timer } from "./clock.ts";

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
}

/**
 * A clock that moves only when told to. Timers fire in order of time, then of creation; between two timers the
 * microtask queue is drained, so that promise chains started by one timer run before the next fires.
 */
export class VirtualClock implements Clock {
  #now: number;
  #mono = 0;
  #order = 0;
  readonly #timers = new Set<Entry>();

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
    const entry = { at: this.#mono + Math.max(0, ms), order: this.#order++, fn };
    this.#timers.add(entry);
    return { cancel: () => void this.#timers.delete(entry) };
  }

  /** Number of timers that have not fired. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Moves the wall clock alone, as an administrator or a leap does. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** Moves time forward by `ms`, firing what falls due. */
  async advance(ms: number): Promise<void> {
    const end = this.#mono + ms;
    await drain();
    for (let next = this.#next(); next !== undefined && next.at <= end; next = this.#next()) {
      this.#moveTo(next.at);
      this.#timers.delete(next);
      next.fn();
      await drain();
    }
    this.#moveTo(end);
  }

  #moveTo(at: number): void {
    if (at <= this.#mono) return;
    this.#now += at - this.#mono;
    this.#mono = at;
  }

  #next(): Entry | undefined {
    let best: Entry | undefined;
    for (const entry of this.#timers) {
      if (best === undefined || entry.at < best.at || (entry.at === best.at && entry.order < best.order))
        best = entry;
    }
    return best;
  }
}

/** Lets every promise callback that is ready run; chains of up to some hundred steps end within one drain. */
async function drain(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await Promise.resolve();
}
