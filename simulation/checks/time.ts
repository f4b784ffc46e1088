import type { AppliedWrite } from "@nodeyard/tree";
import type { Replay } from "./replay.ts";

/** A moment by both clocks, milliseconds: the tree's may be put back or forward, the other never jumps. */
export interface Moment {
  readonly tree: number;
  readonly steady: number;
}

export function momentOf(write: AppliedWrite, { now }: Replay): Moment {
  return { tree: write.at, steady: now };
}

/** What has passed by the clock by which it is more: whoever waits by either is not early. */
export function passed(since: Moment, until: Moment): number {
  return Math.max(until.tree - since.tree, until.steady - since.steady);
}

/**
 * What is over goes so soon once the faults are over, milliseconds: a clock that jumped is believed after three sweeps of a minute
 * (rule 8), and a lost event is made good by a resync.
 */
export const LATE_MS = 300_000;
