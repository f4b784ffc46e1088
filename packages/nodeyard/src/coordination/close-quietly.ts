import { type Clock, messageOf } from "@nodeyard/runtime";
import type { Counters, Log } from "../telemetry/index.ts";
import { settledWithin } from "./within.ts";

/** A driver has this long to close a provider, milliseconds. */
const CLOSE_MS = 10_000;

/**
 * Closes what a driver opened. Drivers are anyone's: one that fails, or never ends, is logged and holds up nobody
 * (rule 8).
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
