import type { DriverContext } from "@nodeyard/driver";
import { type Clock, messageOf, settledWithin } from "@nodeyard/runtime";
import type { Counters, Log } from "@nodeyard/telemetry";

/** A driver has this long to close a provider, milliseconds. */
const CLOSE_MS = 10_000;

/** Where a provider's driver reports the times of its requests. */
export function observeApi(counters: Counters, provider: string): NonNullable<DriverContext["observe"]> {
  return ({ operation, result, ms }) =>
    counters.time("provider.api_call", ms, { provider, operation, result });
}

/** Why an opening failed. A time limit alone is no cause: the last request without an answer says what the far end, or the way to it, said. */
export function openingError(error: unknown, lastTry: string | undefined): string {
  const isLate = /provider_silent$/.test(String((error as { readonly code?: unknown }).code));
  return isLate && lastTry !== undefined ? `${lastTry} (${messageOf(error)})` : messageOf(error);
}

/**
 * Closes a driver or provider. A driver may come from a third party: when its `close` fails or does not end in time, that is logged
 * and the caller continues (rule 8). Never rejects.
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
