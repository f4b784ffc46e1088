import type { Log } from "../telemetry/index.ts";
import type { Machine } from "./machine.ts";

/** A stop in good order may take this long; whatever is left then is as after a crash, which everything survives. */
export const STOP_MS = 15_000;
/** Of it, for work that is under way. */
export const GRACE_MS = 10_000;

/**
 * Waits for the first SIGINT or SIGTERM, then runs `stop`. A second signal, or a stop that takes longer than STOP_MS,
 * ends the process at once with code 1. Returns the exit code.
 */
export async function untilStopped(machine: Machine, log: Log, stop: () => Promise<void>): Promise<number> {
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
  log.info({ signal: await first.promise }, "stopping; a second signal ends it at once");
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
  return 0;
}
