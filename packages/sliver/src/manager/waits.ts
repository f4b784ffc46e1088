import { messageOf } from "@nodeyard/runtime";
import { NotYetError } from "../errors.ts";
import type { Manager } from "./manager.ts";

/**
 * Resolves when the machine is as the records want this incarnation; rejects with NotYetError when a step of it fails
 * or `ms` are over. What was asked for stays asked for.
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

/** Resolves when the machine has been looked at since `sequence`, or after `ms`. */
export function watched(manager: Manager, sequence: number, ms: number): Promise<void> {
  // After a restart the count begins at 0 again: any other number is a change.
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
