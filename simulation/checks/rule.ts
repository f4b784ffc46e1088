import type { AppliedWrite } from "@nodeyard/tree";
import type { Effect } from "./effect.ts";
import type { Change, Replay, Znode } from "./replay.ts";

/**
 * A rule that must always hold. Each method throws `Broken` if it does not; the replay shows the tree at the present change, without later
 * ones.
 */
export interface Rule {
  onNode?(change: Change, replay: Replay): void;
  onRequest?(change: Change, replay: Replay): void;
  /** After the whole write has been carried out. */
  onWrite?(write: AppliedWrite, replay: Replay): void;
  /** A cloud was called, or changed. */
  onEffect?(effect: Effect, replay: Replay): void;
  /** The faults are over: from now on guarantees with a time limit apply. */
  onCalm?(replay: Replay): void;
}

export function stateOf(znode: Znode | undefined): string | null {
  return (znode?.data.state as string | undefined) ?? null;
}

/** Whether a launcher of Nodeyard wrote it, as processes of the simulation are named. */
export function isLauncher(client: string): boolean {
  return client.startsWith("launcher-");
}
