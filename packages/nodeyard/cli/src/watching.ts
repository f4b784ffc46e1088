import { settledWithin } from "@nodeyard/runtime";
import type { Backend, Watched } from "./backend/backend.ts";
import type { Session } from "./session.ts";

/** Cursor to the first line, then clear the screen (ECMA-48, CUP and ED), before a table is printed again on a terminal. */
export const CLEAR = "\u001b[H\u001b[2J";
/** The time between two prints, milliseconds; faster changes could not be read. */
const PAUSE_MS = 1_000;
/** Between two prints while no event comes, milliseconds: a lost event delays, never loses, and ages go on. */
const RESYNC_MS = 30_000;

/**
 * Calls `print` now and after changes of any of `what`, until a signal ends it, which is no failure. Rejects as `print` does.
 * Changes that come during a print lead to one more.
 */
export async function watching(
  { machine }: Session,
  backend: Backend,
  what: readonly Watched[],
  print: () => Promise<void>,
): Promise<void> {
  const { clock } = machine;
  let isStopped = false;
  const stop = Promise.withResolvers<void>();
  const ignore = machine.onSignal(() => {
    isStopped = true;
    stop.resolve();
  });
  let changed = Promise.withResolvers<void>();
  const watch = backend.watch(what, () => changed.resolve());
  try {
    while (!isStopped) {
      changed = Promise.withResolvers();
      await print();
      await settledWithin(clock, PAUSE_MS, stop.promise);
      await settledWithin(clock, RESYNC_MS, Promise.race([changed.promise, stop.promise]));
    }
  } finally {
    ignore();
    await watch.close();
  }
}
