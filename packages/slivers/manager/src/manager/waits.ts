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
  const done = afterSync(manager, ms, (late) => {
    const failure = manager.failures.of(incarnation);
    if (late) throw new NotYetError("not finished yet; ask again");
    if (failure !== undefined && failure !== failed)
      throw new NotYetError(messageOf(failure.error), { cause: failure.error });
    return manager.isDone(incarnation, revision);
  });
  manager.requestSync();
  return done;
}

/** Resolves when the machine has been inspected since `sequence`, or after `ms`. */
export function watched(manager: Manager, sequence: number, ms: number): Promise<void> {
  // The count restarts at 0 with the process, so any other number means a change.
  return manager.sequence === sequence ? afterSync(manager, ms, () => true) : Promise.resolve();
}

/** Calls `check` after each sync until it returns true, which resolves, or throws, which rejects; after `ms` once more, with `late`. */
function afterSync(manager: Manager, ms: number, check: (late: boolean) => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = (late: boolean) => {
      try {
        if (!check(late)) return;
        resolve();
      } catch (error) {
        reject(error);
      }
      timer.cancel();
      forget();
    };
    const timer = manager.options.clock.setTimer(ms, () => look(true), { background: true });
    const forget = manager.onSync(() => look(false));
  });
}
