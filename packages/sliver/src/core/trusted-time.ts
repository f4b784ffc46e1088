/** Wall time that a jump of the machine's clock does not move at once. All figures are milliseconds. */
export interface TrustedTime {
  /** Wall minus monotonic time, as it was when it was last believed. */
  readonly offset: number;
  /** Offset of the clock after a jump, and how many syncs in a row agreed on it. */
  readonly suspect?: { readonly offset: number; readonly agreed: number };
}

/** A jump above this is not believed at once. */
const JUMP = 30_000;

/** Syncs that must agree before the new time is believed. */
const AGREEING = 3;

export function trustFirst(wall: number, monotonic: number): TrustedTime {
  return { offset: wall - monotonic };
}

/** After one more look at both clocks. A forward jump past every expiry destroyed all slivers of the old manager. */
export function look(time: TrustedTime, wall: number, monotonic: number): TrustedTime {
  const offset = wall - monotonic;
  if (Math.abs(offset - time.offset) <= JUMP) return { offset };
  const same = time.suspect !== undefined && Math.abs(offset - time.suspect.offset) <= JUMP;
  const agreed = same ? time.suspect!.agreed + 1 : 1;
  return agreed >= AGREEING ? { offset } : { offset: time.offset, suspect: { offset, agreed } };
}

/** Seconds since the Unix epoch, by the clock that is believed. */
export function trustedSeconds(time: TrustedTime, monotonic: number): number {
  return (time.offset + monotonic) / 1000;
}

/** Monotonic time at which that clock will show these seconds. */
export function monotonicAt(time: TrustedTime, seconds: number): number {
  return seconds * 1000 - time.offset;
}
