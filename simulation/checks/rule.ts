import type { AppliedWrite, Op } from "@nodeyard/tree";
import type { Effect } from "./effect.ts";
import type { Replay, Znode } from "./replay.ts";

/** A record that one operation of a write made, changed or deleted. */
export interface Change {
  readonly id: string;
  /** Undefined: the operation made it. */
  readonly before: Znode | undefined;
  /** Undefined: the operation deleted it. */
  readonly after: Znode | undefined;
  readonly op: Exclude<Op, { op: "check" }>;
  readonly write: AppliedWrite;
  /** Whether the client held the record's lock before the write. */
  readonly held: boolean;
}

/**
 * One thing that must always hold. Each method throws `Broken` when it does not; the replay shows the tree with the change that is
 * looked at, and nothing that came later.
 */
export interface Rule {
  onNode?(change: Change, replay: Replay): void;
  onRequest?(change: Change, replay: Replay): void;
  /** After the write has been carried out in full. */
  onWrite?(write: AppliedWrite, replay: Replay): void;
  /** A cloud was called, or changed. */
  onEffect?(effect: Effect, replay: Replay): void;
  /** The faults are over: from now on what is promised with a time is due. */
  onCalm?(replay: Replay): void;
}

export function stateOf(znode: Znode | undefined): string | null {
  return (znode?.data.state as string | undefined) ?? null;
}

/** Whether a launcher of Nodeyard wrote it, as processes of the simulation are named. */
export function isLauncher(client: string): boolean {
  return client.startsWith("launcher-");
}
