import type { AppliedWrite } from "@nodeyard/tree";
import type { Moment, Replay } from "./replay.ts";

/** A lost call is repeated for at most this long, milliseconds. */
const UNDER_WAY_MS = 60_000;

/** The moment that a client's record names, a little before the write of that record was carried out. */
export function saidAt(said: number, write: AppliedWrite, { now }: Replay): Moment {
  const since = write.at - said;
  // A lost call is repeated late: the clock may have been set in between, and then proves nothing.
  return { tree: said, steady: since < 0 || since > UNDER_WAY_MS ? now : now - since };
}

/**
 * The time passed for the launcher that wrote, by whichever clock is longest: a wait by either clock is not early. One that started later
 * knows only what time it was then (docs/design/time.md, "Consequences").
 */
export function passed(since: Moment, write: AppliedWrite, replay: Replay): number {
  const until = { tree: write.at, steady: replay.now };
  const started = replay.started.get(write.client);
  const believed =
    started === undefined || started.steady < since.steady
      ? 0
      : started.tree - since.tree + until.steady - started.steady;
  return Math.max(until.tree - since.tree, until.steady - since.steady, believed);
}

/**
 * How soon something that is over is removed after the faults, milliseconds: a clock that jumped is believed after three sweeps of a minute
 * (rule 8), and a lost event is repaired by a resync.
 */
export const LATE_MS = 300_000;
