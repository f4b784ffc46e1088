import type { AppliedWrite } from "@nodeyard/tree";
import type { Replay } from "./replay.ts";

/** A moment by both clocks, milliseconds: the tree's may be set back or forward, the other never jumps. */
export interface Moment {
  readonly tree: number;
  readonly steady: number;
}

export function momentOf(write: AppliedWrite, { now }: Replay): Moment {
  return { tree: write.at, steady: now };
}

/** A lost call is repeated for at most this long, milliseconds. */
const UNDER_WAY_MS = 60_000;

/** The moment that a client's record names, a little before the write of that record was carried out. */
export function saidAt(said: number, write: AppliedWrite, { now }: Replay): Moment {
  const since = write.at - said;
  // A lost call is repeated late: the clock may have been set in between, and then proves nothing.
  return { tree: said, steady: since < 0 || since > UNDER_WAY_MS ? now : now - since };
}

/** The greater of the times passed by both clocks: a wait by either clock is not early. */
export function passed(since: Moment, until: Moment): number {
  return Math.max(until.tree - since.tree, until.steady - since.steady);
}

/**
 * How soon something that is over is removed after the faults, milliseconds: a clock that jumped is believed after three sweeps of a minute
 * (rule 8), and a lost event is repaired by a resync.
 */
export const LATE_MS = 300_000;
