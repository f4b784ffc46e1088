import { messageOf } from "@nodeyard/runtime";
import { NotYetError } from "../errors.ts";
import type { Manager } from "./manager.ts";

/** Milliseconds after which an operation on a file is told as one that waits. */
const LONG = 30_000;

/** Finds operations that wait from how many are under way at each look. Times are monotonic milliseconds. */
export class LongOperations {
  /** At n: since when more than n have been under way at every look. */
  readonly #since: number[] = [];

  see(underWay: number, now: number): void {
    this.#since.length = Math.min(this.#since.length, underWay);
    while (this.#since.length < underWay) this.#since.push(now);
  }

  count(now: number): number {
    return this.#since.filter((since) => now - since >= LONG).length;
  }
}

/**
 * Resolves when the machine is as the records want this incarnation. Rejects with NotYetError when one of its steps fails, or after `ms`.
 * The request itself stays in effect.
 */
export function converged(manager: Manager, incarnation: number, ms: number): Promise<void> {
  const { revision } = manager;
  const failed = manager.failures.of(incarnation);
  return new Promise((resolve, reject) => {
    const end = (error?: Error) => {
      timer.cancel();
      forget();
      if (error === undefined) resolve();
      else reject(error);
    };
    const late = () => end(new NotYetError("not finished yet; ask again"));
    const timer = manager.options.clock.setTimer(ms, late, { background: true });
    const forget = manager.onSync(() => {
      const failure = manager.failures.of(incarnation);
      if (failure !== undefined && failure !== failed)
        end(new NotYetError(messageOf(failure.error), { cause: failure.error }));
      else if (manager.isDone(incarnation, revision)) end();
    });
    manager.requestSync();
  });
}

/** Resolves when the machine has been inspected since `sequence`, or after `ms`. */
export function watched(manager: Manager, sequence: number, ms: number): Promise<void> {
  // The count restarts at 0 with the process, so any other number means a change.
  if (manager.sequence !== sequence) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      timer.cancel();
      forget();
      resolve();
    };
    const timer = manager.options.clock.setTimer(ms, end, { background: true });
    const forget = manager.onSync(end);
  });
}
