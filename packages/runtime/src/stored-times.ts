/** One moment by both clocks, milliseconds. */
export interface Moment {
  /** The time that stored instants are written in. It may jump. */
  readonly now: number;
  /** A clock that never jumps. */
  readonly steady: number;
  /** False after `now` jumped, until it is known which time is right: what is read of it meanwhile is not remembered. */
  readonly trusted: boolean;
}

interface Known {
  readonly instant: number | null;
  readonly steady: number;
  /** Of the clock that may jump; Infinity: it is not known what that showed. */
  readonly now: number;
}

/**
 * Stored instants as moments of the steady clock. Each is translated once, when it is first read: whatever `now` does
 * afterwards, what was ten minutes away stays ten minutes away.
 */
export class StoredTimes {
  readonly #known = new Map<string, Known>();

  /**
   * The steady moment of `instant`, which is stored under the name `key`. No rule sets it further ahead than `aheadMs` (0 for what
   * has happened), so that one which lies further ahead was written by a clock that has been put back since: it is read as that
   * far ahead of the moment at which it was first seen. Null: nothing says when it was, and it counts from when it was first seen.
   */
  read(key: string, instant: number | null, { now, steady, trusted }: Moment, aheadMs: number): number {
    const known = this.#known.get(key);
    if (known !== undefined && known.instant === instant) return known.steady;
    const found = steady + (instant === null ? 0 : Math.min(instant - now, aheadMs));
    if (trusted || instant === null)
      this.#known.set(key, { instant, steady: found, now: instant ?? Number.POSITIVE_INFINITY });
    return found;
  }

  /** What is stored as `instant` is `aheadMs` from now, whatever time it is to its writer: it has just been written before our eyes. */
  saw(key: string, instant: number | null, { now, steady, trusted }: Moment, aheadMs = 0): void {
    this.#known.set(key, {
      instant,
      steady: steady + aheadMs,
      now: trusted ? now + aheadMs : Number.POSITIVE_INFINITY,
    });
  }

  /** How long ago that was, milliseconds: as long as either clock says. */
  age(key: string, instant: number | null, moment: Moment): number {
    const since = this.read(key, instant, moment, 0);
    const known = this.#known.get(key);
    const told = known !== undefined && known.instant === instant ? known.now : (instant ?? moment.now);
    return Math.max(moment.steady - since, moment.now - told);
  }

  /** To be called when what is stored under `key` has gone. */
  forget(key: string): void {
    this.#known.delete(key);
  }
}
