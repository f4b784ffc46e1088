import { messageOf } from "@nodeyard/runtime";
import { NotYetError } from "../errors.ts";
import type { Manager } from "./manager.ts";

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
