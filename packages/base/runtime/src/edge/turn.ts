/**
 * Number of ticks between two turns of the event loop. Node empties its microtask queue before it runs a tick, so a tick is
 * enough to know that no promise callback is ready, and it saves the system call of a turn. A turn is taken from time to time
 * nevertheless, so that signals, messages and the timeout of a test are processed.
 */
const TICKS_PER_TURN = 64;

let ticks = 0;

/** Resolves when all ready promise callbacks have run, and all callbacks that these made ready. */
export function microtasksDone(): Promise<void> {
  return new Promise((resolve) => {
    if (++ticks % TICKS_PER_TURN === 0) setImmediate(resolve);
    else process.nextTick(resolve);
  });
}
