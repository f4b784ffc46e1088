import type { NodeyardError } from "@nodeyard/runtime";
import type { Log } from "../telemetry/index.ts";
import type { Machine } from "./machine.ts";

/** A stop in good order may take this long; whatever is left then is as after a crash, which everything survives. */
export const STOP_MS = 15_000;
/** Of it, for work that is under way. */
export const GRACE_MS = 10_000;

/**
 * Waits for the first SIGINT or SIGTERM, or for `failed` to resolve with what makes going on useless, then runs `stop`. A second
 * signal, or a stop that takes longer than STOP_MS, ends the process at once with code 1. Returns the exit code.
 */
export async function untilStopped(
  machine: Machine,
  log: Log,
  stop: () => Promise<void>,
  failed: Promise<NodeyardError> = new Promise(() => {}),
): Promise<number> {
  const { clock } = machine;
  const first = Promise.withResolvers<string>();
  const ignore = machine.onSignal((signal, before) => {
    if (before === 0) {
      first.resolve(signal);
      return;
    }
    log.warn({ signal }, "stopping at once, because a second signal came");
    machine.exit(1);
  });
  const why = await Promise.race([first.promise, failed]);
  if (typeof why === "string") log.info({ signal: why }, "stopping; a second signal ends it at once");
  else log.error({ code: why.code }, why.message);
  const limit = clock.setTimer(STOP_MS, () => {
    log.error({ afterMs: STOP_MS }, "the stop takes too long; ending at once");
    machine.exit(1);
  });
  try {
    await stop();
  } finally {
    limit.cancel();
    ignore();
  }
  log.info({}, "stopped");
  return typeof why === "string" ? 0 : 1;
}
