import { join } from "node:path";

/** A queue of a CI. Each of its jobs adds a line to `file`: when it began, nanoseconds since the epoch. */
export interface Side {
  readonly file: string;
  queue(): unknown;
}

/** A CI with a queue for the connector, and one for the least that starts a runner. */
export interface Sides {
  readonly ours: Side;
  readonly floor: Side;
  close(): Promise<void>;
}

/** Nodes of each pool. One is ready while the other has the job before, or is made anew. */
export const NODES = 2;

/** The command that starts the runner of tests of this system. */
export function runnerOf(system: string): string {
  return `${process.execPath} ${join(import.meta.dirname, `../../testing/${system}/runner.mjs`)}`;
}
