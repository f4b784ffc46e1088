import { type Clock, deadline } from "@nodeyard/runtime";
import { CommandError } from "./errors.ts";

/** How long a person waits for a server that may be gone, once there is nothing more to gain. */
export const PATIENCE_MS = 3_000;

/** Rejects with the signal's reason. */
export function rejectedAt(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  signal.addEventListener("abort", () => reject(signal.reason));
  return promise;
}

/** Resolves as `work` does, or rejects with `late()` after `ms`; the result of `work` is ignored then. */
export async function within<T>(clock: Clock, ms: number, late: () => Error, work: Promise<T>): Promise<T> {
  work.catch(() => {});
  const limit = deadline(clock, ms, late);
  try {
    return await Promise.race([work, rejectedAt(limit.signal)]);
  } finally {
    limit.cancel();
  }
}

/** What `work` gives, or a CommandError when it takes longer than PATIENCE_MS. */
export function patiently<T>(clock: Clock, work: Promise<T>): Promise<T> {
  const late = () => new CommandError("cli.no_answer", `no answer within ${PATIENCE_MS / 1000} s`);
  return within(clock, PATIENCE_MS, late, work);
}

/** Resolves at the event, or after `ms` milliseconds. */
export function settledIn(clock: Clock, ms: number, event: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(ms, resolve);
    void event.then(() => {
      timer.cancel();
      resolve();
    });
  });
}
