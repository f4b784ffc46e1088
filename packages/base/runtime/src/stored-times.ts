/** One moment by two clocks, in milliseconds. */
export interface Moment {
  /** The clock of stored times. It may jump. */
  readonly now: number;
  /** A clock that never jumps. */
  readonly steady: number;
  /** False after `now` jumped, until it is known which time is right. Times read meanwhile are not remembered. */
  readonly trusted: boolean;
}

interface Known {
  readonly instant: number | null;
  readonly steady: number;
  /** The time by the clock that may jump; Infinity when it is unknown. */
  readonly now: number;
}

/**
 * Translates stored times to a steady clock. Each time is translated once, when it is first read, so that a jump of `now`
 * does not change how far away it is.
 */
export class StoredTimes {
  readonly #known = new Map<string, Known>();

  /**
   * The steady time of `instant`, which is stored under `key`. No rule sets a time further ahead than `aheadMs` (0 for past events). A
   * time further ahead was written by a clock that has been set back since, so it is read as `aheadMs` after it was first seen. Null
   * (time unknown) counts as the moment when it was first seen.
   */
  read(key: string, instant: number | null, { now, steady, trusted }: Moment, aheadMs: number): number {
    const known = this.#known.get(key);
    if (known !== undefined && known.instant === instant) return known.steady;
    const found = steady + (instant === null ? 0 : Math.min(instant - now, aheadMs));
    if (trusted || instant === null)
      this.#known.set(key, { instant, steady: found, now: instant ?? Number.POSITIVE_INFINITY });
    return found;
  }

  /** Records that `instant` is `aheadMs` from now, whatever the writer's clock shows, because this process saw it being written. */
  saw(key: string, instant: number | null, { now, steady, trusted }: Moment, aheadMs = 0): void {
    this.#known.set(key, {
      instant,
      steady: steady + aheadMs,
      now: trusted ? now + aheadMs : Number.POSITIVE_INFINITY,
    });
  }

  /** Age in milliseconds: the larger of the ages by the two clocks. */
  age(key: string, instant: number | null, moment: Moment): number {
    const since = this.read(key, instant, moment, 0);
    const known = this.#known.get(key);
    const recorded = known !== undefined && known.instant === instant ? known.now : (instant ?? moment.now);
    return Math.max(moment.steady - since, moment.now - recorded);
  }

  /** Must be called when the record stored under `key` is deleted. */
  forget(key: string): void {
    this.#known.delete(key);
  }
}
