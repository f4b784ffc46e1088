import type { Clock } from "@nodeyard/runtime";

/** Wall clock and monotonic clock at one moment, in milliseconds. */
export interface Reading {
  readonly wall: number;
  readonly monotonic: number;
}

export function readingOf(clock: Clock): Reading {
  return { wall: clock.now(), monotonic: clock.monotonic() };
}

/** Most that two clocks diverge per millisecond: 100 ppm, twice the error of common quartz clocks. */
const DRIFT = 1e-4;
/** The tree's times are whole milliseconds, rounded down. */
const GRAIN_MS = 1;
/**
 * The wall clock and the monotonic clock may differ by this much over a call, because of slewing or of the delay between the two readings
 * (ms).
 */
const SLEW_MS = 20;

/**
 * Estimates tree time minus the wall clock, from the times in replies to writes. The server took its time between sending and reply, so
 * the midpoint is wrong by at most half of the round trip. As in NTP's clock filter, the sample with the smallest error wins, and slow
 * writes change nothing. The error of a sample grows with its age by DRIFT. A new sample that contradicts the best one shows that a clock
 * was set or that another server answers, so the estimate restarts from it.
 */
export class ClockOffset {
  #best: { readonly offset: number; readonly error: number; readonly at: number } | undefined;

  /** The offset in milliseconds; 0 before the first write. */
  get value(): number {
    return this.#best?.offset ?? 0;
  }

  /** Largest error of the offset at a monotonic time, in milliseconds; Infinity before the first write. */
  errorAt(monotonic: number): number {
    if (this.#best === undefined) return Number.POSITIVE_INFINITY;
    return this.#best.error + Math.max(0, monotonic - this.#best.at) * DRIFT;
  }

  /** Adds the sample of a write that was sent at `sent` and whose reply, received at `now`, contains the server's `treeTime`. */
  learn(treeTime: number, sent: Reading, now: Reading): void {
    const roundTrip = now.monotonic - sent.monotonic;
    // The wall clock was set during the call. Earlier samples refer to the old clock, and the midpoint to neither, so restart from this
    // reply.
    if (Math.abs(now.wall - sent.wall - roundTrip) > SLEW_MS + roundTrip * DRIFT) {
      this.#best = { offset: treeTime - now.wall, error: roundTrip + GRAIN_MS, at: now.monotonic };
      return;
    }
    const offset = treeTime - (sent.wall + now.wall) / 2;
    const error = roundTrip / 2 + GRAIN_MS;
    const known = this.errorAt(now.monotonic);
    const agrees = Math.abs(offset - this.value) <= error + known;
    if (this.#best === undefined || error <= known || !agrees)
      this.#best = { offset, error, at: now.monotonic };
  }
}
