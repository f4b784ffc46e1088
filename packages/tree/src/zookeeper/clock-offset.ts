import type { Clock } from "@nodeyard/runtime";

/** Both of our clocks at one moment, milliseconds. */
export interface Reading {
  readonly wall: number;
  readonly monotonic: number;
}

export function readingOf(clock: Clock): Reading {
  return { wall: clock.now(), monotonic: clock.monotonic() };
}

/** How much two clocks part in a millisecond, at most: 100 ppm, twice what quartz clocks are good for. */
const DRIFT = 1e-4;
/** The tree tells whole milliseconds, rounded down. */
const GRAIN_MS = 1;
/** Our wall clock and the monotonic one may part by this much over a call: it is slewed, or read in between. Milliseconds. */
const SLEW_MS = 20;

/**
 * Tree time minus our wall clock, from writes whose answers tell the tree's time. It lies between sending and answer, so that the middle
 * is off by half of the round trip at most: the best write of those of late is believed, as NTP's clock filter does, and slow ones
 * change nothing. What a sample says grows less certain with its age, by what clocks drift. One that cannot be true together with the
 * best one tells that a clock was put right, or that another server tells the time: it begins anew.
 */
export class ClockOffset {
  #best: { readonly offset: number; readonly error: number; readonly at: number } | undefined;

  /** Milliseconds; 0 until the first write. */
  get value(): number {
    return this.#best?.offset ?? 0;
  }

  /** How far it may be off now, milliseconds; Infinity until the first write. */
  errorAt(monotonic: number): number {
    if (this.#best === undefined) return Number.POSITIVE_INFINITY;
    return this.#best.error + Math.max(0, monotonic - this.#best.at) * DRIFT;
  }

  /** A write that was sent at `sent` and whose answer, read at `now`, tells `treeTime`. */
  learn(treeTime: number, sent: Reading, now: Reading): void {
    const roundTrip = now.monotonic - sent.monotonic;
    // Our wall clock was put right meanwhile: what was learnt before is of the former one, and the middle is of neither.
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
