import type { DriverContext } from "@nodeyard/driver";
import { type Clock, messageOf } from "@nodeyard/runtime";
import type { Counters, Log } from "../telemetry/index.ts";

/** A driver has this long to close a provider, milliseconds. */
const CLOSE_MS = 10_000;

/** Waits until `work` settles, but not longer than `ms`. Returns whether it settled; otherwise its result is ignored. */
export function settledWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(ms, () => resolve(false));
    const end = () => {
      timer.cancel();
      resolve(true);
    };
    work.then(end, end);
  });
}

/** The outcome of `work`, or a rejection with `late()` after `ms`; a value that comes too late goes to `discard`. */
export function inTime<T>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
  late: () => Error,
  discard: (value: T) => void = () => {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    let over = false;
    const timer = clock.setTimer(ms, () => {
      over = true;
      reject(late());
    });
    work.then(
      (value) => {
        timer.cancel();
        if (over) discard(value);
        else resolve(value);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error as Error);
      },
    );
  });
}

/** Where a provider's driver reports the times of its requests. */
export function observeApi(counters: Counters, provider: string): NonNullable<DriverContext["observe"]> {
  return ({ operation, result, ms }) =>
    counters.time("provider.api_call", ms, { provider, operation, result });
}

/**
 * Closes a driver or provider. A driver may come from a third party: when its `close` fails or does not end in time, that is logged and
 * the caller continues (rule 8).
 */
export async function closeQuietly(
  { clock, log, counters }: { readonly clock: Clock; readonly log: Log; readonly counters?: Counters },
  name: string,
  provider: { close(): Promise<void> },
): Promise<void> {
  const closing = Promise.resolve()
    .then(() => provider.close())
    .catch((error: unknown) =>
      log.warn({ provider: name, error: messageOf(error) }, "cannot close a provider; it is left open"),
    );
  if (await settledWithin(clock, CLOSE_MS, closing)) return;
  counters?.add("launcher.provider_silent", 1, { provider: name, call: "close" });
  log.warn({ provider: name, afterMs: CLOSE_MS }, "a provider did not close in time; it is left open");
}
