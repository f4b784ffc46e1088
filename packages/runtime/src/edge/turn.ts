/**
 * Turns between two of the event loop's. Node empties its microtask queue before it runs a tick, so a tick is enough to
 * know that no promise callback is ready; a turn of the loop costs a system call more. Now and then it gets one all the
 * same, so that signals, messages and a test's own deadline are heard.
 */
const TICKS_PER_TURN = 64;

let ticks = 0;

/** Resolves when every promise callback that is ready has run, and those that they made ready, however long the chain. */
export function microtasksDone(): Promise<void> {
  return new Promise((resolve) => {
    if (++ticks % TICKS_PER_TURN === 0) setImmediate(resolve);
    else process.nextTick(resolve);
  });
}
