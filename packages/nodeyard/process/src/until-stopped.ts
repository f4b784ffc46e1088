import { NodeyardError, type Timer } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { Machine, Signal } from "@nodeyard/telemetry/machine";

/**
 * A stop in good order may take this long, milliseconds; whatever is left then is as after a crash, which everything survives.
 * Below the 90 s that systemd waits before it kills, and the 30 s of Kubernetes.
 */
export const STOP_MS = 15_000;
/** Of it, for work that is under way. */
export const GRACE_MS = 10_000;

/** What a process does until it is stopped. */
export interface Stoppable {
  /** Resolves with what makes going on useless; the process then stops in good order, with code 1. Absent: nothing does. */
  readonly failed?: Promise<NodeyardError>;
  /** Reads the configuration and certificates again, at SIGHUP; never rejects. Absent: there is nothing to reload, and SIGHUP stops the process. */
  reload?(): Promise<void>;
  /** What does not go on, and only a restart would help; undefined: nothing. Absent: it cannot say. */
  stuck?(): string | undefined;
  /** Ends the work; what is under way has `graceMs` milliseconds, and is given up then. Called once. */
  close(graceMs: number): Promise<void>;
}

/**
 * Starts the work of a process, waits for a signal to stop or for the work's `failed`, and closes it. A signal during the start aborts
 * `stopping`; the start then rejects with its reason and leaves nothing, or it resolves and is closed. A second signal, or a stop that
 * takes longer than STOP_MS, ends the process at once with code 1. SIGHUP reloads and never stops; during the start it takes effect at
 * the end of the start. Returns the exit code.
 */
export async function untilStopped(
  machine: Machine,
  log: Log,
  start: (stopping: AbortSignal) => Promise<Stoppable>,
): Promise<number> {
  const stopping = new AbortController();
  const signalled = Promise.withResolvers<undefined>();
  let limit: Timer | undefined;
  const beginStop = () => {
    if (limit === undefined) machine.report("stopping");
    limit ??= machine.clock.setTimer(STOP_MS, () => {
      log.error({ afterMs: STOP_MS }, "stopping takes too long; exiting now");
      machine.exit(1);
    });
  };
  let running: Stoppable | undefined;
  let isStopping = false;
  let isReloadDue = false;
  const stop = (signal: Signal) => {
    if (isStopping) {
      log.warn({ signal }, "exiting now: second signal");
      machine.exit(1);
    }
    isStopping = true;
    log.info({ signal }, "stopping; a second signal exits at once");
    beginStop();
    stopping.abort(new NodeyardError("process.stopped", `the start was interrupted: ${signal}`));
    signalled.resolve(undefined);
  };
  const reload = async (work: Stoppable) => {
    if (work.reload === undefined) return stop("SIGHUP");
    log.info({ signal: "SIGHUP" }, "reloading the configuration");
    machine.report("reloading");
    await work.reload();
    if (!isStopping) machine.report("ready");
  };
  // Asked by the service manager's watchdog: a process that hangs is not kept alive by a timer of its own.
  const works = () => {
    const why = running?.stuck?.();
    if (why !== undefined) log.error({}, `${why}: the service manager is to restart the process`);
    return why === undefined;
  };
  const ignore = machine.onSignal((signal) => {
    if (signal !== "SIGHUP") stop(signal);
    else if (running === undefined) isReloadDue = true;
    else if (!isStopping) void reload(running);
  });
  let failure: NodeyardError | undefined;
  try {
    running = await start(stopping.signal).catch((error: unknown) => {
      if (stopping.signal.aborted && error === stopping.signal.reason) return undefined;
      throw error;
    });
    if (running !== undefined) {
      if (!stopping.signal.aborted) machine.report("ready", works);
      // It came during the start, which may have read the files before they changed.
      if (isReloadDue) void reload(running);
      failure = await Promise.race([signalled.promise, running.failed ?? signalled.promise]);
      if (failure !== undefined) log.error({ code: failure.code }, failure.message);
      beginStop();
      await running.close(GRACE_MS);
    }
  } finally {
    limit?.cancel();
    ignore();
  }
  log.info({}, "stopped");
  return failure === undefined ? 0 : 1;
}
