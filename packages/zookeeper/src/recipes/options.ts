import { systemClock, systemRandom } from "../edge/system.ts";
import type { Clock, Random, ZooKeeperClient } from "../types.ts";

/** A client; recipes take its time and chance unless they are given others, and the system's when it shows none. */
export type RecipeClient = ZooKeeperClient & { readonly clock?: Clock; readonly random?: Random };

export function clockOf(client: RecipeClient, options: { readonly clock?: Clock }): Clock {
  return options.clock ?? client.clock ?? systemClock;
}

export function randomOf(client: RecipeClient, options: { readonly random?: Random }): Random {
  return options.random ?? client.random ?? systemRandom;
}

export interface LockOptions {
  /** Data of the contender, which tells people who holds the lock. Default: empty. */
  readonly identifier?: string | Uint8Array;
  /** A contender that outlives its session, until somebody deletes it. Default false. */
  readonly persistent?: boolean;
  /**
   * What to do when the lock parent is missing. "never": reject with NoNode. "parent-only": create the lock parent
   * itself, and reject with NoNode when the path above it is missing too: locking what is gone must not bring it back
   * as an empty ghost. Default "never".
   */
  readonly createParent?: "never" | "parent-only";
  /**
   * Time from now until the attempt is given up with LockTimeout, all waits and retries included. Default 60,000;
   * Infinity is allowed.
   */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
  readonly random?: Random;
}

export const DEFAULT_LOCK_DEADLINE_MS = 60_000;
