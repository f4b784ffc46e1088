import { execFile } from "node:child_process";
import { systemClock } from "./system.ts";

/** Milliseconds for one report. */
const LIMIT_MS = 10_000;
/** Reports of life within the time after which the service manager takes the process for hung. */
const BEATS = 3;

/** What a service reports of itself; READY=1 also ends a reload. */
export type ServiceState = "ready" | "reloading" | "stopping";

/**
 * Reports a service's states to the systemd that started it (sd_notify(3)), and, from the first "ready" on, that the event loop turns and
 * `works` of that report is true, where the unit has a WatchdogSec. Does nothing where the environment names no socket. Takes the variables out of `env`, so that the programs
 * that the service starts do not report in its name. A report that fails is a warning of the process.
 *
 * Node has no datagram sockets of the Unix kind. systemd's own program sends the reports, in order and one at a time.
 */
export function serviceReporter(
  env: NodeJS.ProcessEnv,
): (state: ServiceState, works?: () => boolean) => void {
  const { NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID } = env;
  delete env.NOTIFY_SOCKET;
  delete env.WATCHDOG_USEC;
  delete env.WATCHDOG_PID;
  if (NOTIFY_SOCKET === undefined) return () => {};
  const isWatched = WATCHDOG_PID === undefined || Number(WATCHDOG_PID) === process.pid;
  const beatMs = isWatched ? Number(WATCHDOG_USEC ?? 0) / 1000 / BEATS : 0;
  let sent = Promise.resolve();
  const send = (...variables: readonly string[]) => {
    sent = sent.then(() => report(variables, { ...env, NOTIFY_SOCKET }));
    return sent;
  };
  let isBeating = false;
  const beat = async (works: () => boolean) => {
    if (works()) await send("WATCHDOG=1");
    systemClock.setTimer(beatMs, () => void beat(works), { background: true });
  };
  return (state, works = () => true) => {
    if (state === "stopping") void send("STOPPING=1");
    // CLOCK_MONOTONIC at the time of the report, as Type=notify-reload wants it.
    else if (state === "reloading")
      void send("RELOADING=1", `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
    else void send("READY=1");
    if (state !== "ready" || isBeating || !(beatMs > 0)) return;
    isBeating = true;
    void beat(works);
  };
}

function report(variables: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((resolve) => {
    execFile("systemd-notify", variables, { env, timeout: LIMIT_MS }, (error) => {
      if (error !== null)
        process.emitWarning(`cannot report ${variables[0]} to systemd: ${error.message.trim()}`);
      resolve();
    });
  });
}
