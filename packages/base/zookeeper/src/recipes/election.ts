import type { ZooKeeper } from "../client/zookeeper.ts";
import { type HeldLock, type LockOptions, lock } from "./lock.ts";

/** `deadlineMs`: how long to wait for the election; default: until `signal` fires. */
export type ElectionOptions = Omit<LockOptions, "persistent">;

/**
 * Waits for leadership under `parent` and runs `lead` while this client is the leader. `term` aborts when the session ends
 * (another client may already lead) or when `options.signal` fires; `lead` must stop then. After a lost session the client
 * competes again, once `lead` has returned. Resolves when `lead` returns during its term, and rejects with any error of
 * `lead`. The election uses the contenders of a lock, so kazoo's elections under the same parent take part in it.
 */
export async function stand(
  client: ZooKeeper,
  parent: string,
  options: ElectionOptions,
  lead: (term: AbortSignal) => Promise<void>,
): Promise<void> {
  for (;;) {
    const held = await lock(client, parent, { deadlineMs: Number.POSITIVE_INFINITY, ...options });
    if (await serve(held, options.signal, lead)) return;
  }
}

/** Runs one term. Returns true when `lead` finished or `signal` fired, false when the session was lost and a new term may begin. */
async function serve(
  held: HeldLock,
  signal: AbortSignal | undefined,
  lead: (term: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const term = signal === undefined ? held.lost : AbortSignal.any([held.lost, signal]);
  try {
    await lead(term);
    return !held.lost.aborted || signal?.aborted === true;
  } catch (error) {
    // The end of the session interrupted `lead`: compete again. Any other error belongs to `lead` itself.
    if (held.lost.aborted && error === held.lost.reason) return false;
    throw error;
  } finally {
    await held.release();
  }
}
