import { Closed } from "../errors.ts";
import type { Clock, Status, ZooKeeperClient } from "../types.ts";
import type { Entry, Place } from "./entry.ts";
import { LockLost } from "./errors.ts";
import { leave, removalLimit } from "./removal.ts";

/** A lock that we won. Exclusive, not re-entrant. */
export interface HeldLock extends AsyncDisposable {
  /** Path of our contender: a `check` of it in a multi fences what else the multi writes. */
  readonly path: string;
  /** Aborts, with a LockLost, when the session of an ephemeral contender ends before `release`. */
  readonly lost: AbortSignal;
  /**
   * Gives the lock back, over broken connections; a contender that is gone already is no error. May be called again
   * after it has failed.
   */
  release(options?: { readonly deadlineMs?: number }): Promise<void>;
}

/** The handle of a lock whose contender is first in the line. */
export function hold(client: ZooKeeperClient, clock: Clock, entry: Entry, place: Place): HeldLock {
  const controller = new AbortController();
  const onStatus = (status: Status) => {
    const over = status.state === "expired" || status.state === "closed" || status.sessionId !== place.owner;
    if (!over) return;
    unsubscribe();
    controller.abort(new LockLost(place.path, { cause: status.cause }));
  };
  const unsubscribe = place.owner === 0n ? () => undefined : client.onStatus(onStatus);
  let released: Promise<void> | undefined;

  function release(options: { readonly deadlineMs?: number } = {}): Promise<void> {
    unsubscribe();
    const limit = removalLimit(clock, entry.parent, options.deadlineMs);
    released ??= leave(client, entry, place, limit).catch((error: unknown) => {
      released = undefined;
      // The session ends with its client, and the contender with the session.
      if (error instanceof Closed && place.owner !== 0n) return;
      throw error;
    });
    return released;
  }
  return { path: place.path, lost: controller.signal, release, [Symbol.asyncDispose]: () => release() };
}
