import type { ZooKeeper } from "../client/zookeeper.ts";
import { type HeldLock, type LockOptions, lock } from "./lock.ts";

/** `deadlineMs`: how long to stand for election; default: until `signal` fires. */
export type ElectionOptions = Omit<LockOptions, "persistent">;

/**
 * Stands for election under `parent` and runs `lead` while elected. `term` aborts when the session ends (another may
 * lead already) or when `options.signal` fires; `lead` must stop then. After a lost session it stands again, once `lead`
 * has returned; it resolves when `lead` has returned by itself, and rejects with what `lead` throws.
 * The line is that of a lock, so Python's elections take part in it.
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

/** Runs one term. True when it ended because `lead` was done. */
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
    // A leader that was cut short by the end of its session stands again; anything else is its own failure.
    if (held.lost.aborted && error === held.lost.reason) return false;
    throw error;
  } finally {
    await held.release();
  }
}
