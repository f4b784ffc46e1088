import { backoff, jitter, type Random } from "@nodeyard/runtime";

/** Tries that fail before a node is marked; so many at least also when it has been tried for long. */
const TRIES = 10;
const TRIES_AT_LEAST = 3;
const LONG_MS = 3_600_000;

const FIRST_MS = 1_000;
const MOST_MS = 300_000;
/** A marked node is still tried, milliseconds. */
const DEAD_MS = 1_800_000;

/** Failed tries to delete one node, as far as this process knows. `since`: steady milliseconds, of the first. */
export interface Tries {
  readonly failed: number;
  readonly since: number;
}

/** Whether a person should look: it does not go by itself. Pure. */
export function isDeadLetter({ failed, since }: Tries, now: number): boolean {
  return failed >= TRIES || (failed >= TRIES_AT_LEAST && now - since >= LONG_MS);
}

/** Pause before the next try, milliseconds. */
export function deletionPause(random: Random, { failed }: Tries, dead: boolean): number {
  return dead ? jitter(random, DEAD_MS) : backoff(random, failed - 1, FIRST_MS, MOST_MS);
}
