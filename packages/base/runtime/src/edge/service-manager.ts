import { execFile } from "node:child_process";
import { systemClock } from "./system.ts";

/** Time limit of one report in milliseconds. */
const LIMIT_MS = 10_000;
/** Watchdog reports within the time after which systemd considers the service hung. */
const BEATS = 3;

/** States that a service reports. "ready" (READY=1) also ends a reload. */
export type ServiceState = "ready" | "reloading" | "stopping";

/**
 * Reports a service's state to systemd (sd_notify(3)). When the unit has a WatchdogSec, it also reports, from the first "ready" on, that
 * the event loop runs and that `works` returns true. Does nothing when the environment names no socket. Removes systemd's variables from
 * `env`, so that child processes of the service do not report in its name. A failed report causes a process warning.
 *
 * Node has no Unix datagram sockets, so systemd's own program `systemd-notify` sends the reports, in order and one at a time.
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
    // Type=notify-reload requires the time of the report by CLOCK_MONOTONIC.
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
