import { homedir, hostname, userInfo } from "node:os";
import { performance } from "node:perf_hooks";
import { serviceReporter, sleep, systemClock, systemRandom } from "@nodeyard/runtime";
import type { Machine, Signal } from "../machine.ts";

/** A terminal sends Ctrl-C to every process of a command, and npm and shells pass it on: that is one signal, not two. */
const ECHO_MS = 300;
/** The old launcher stops at SIGUSR1; left alone, Node would open its debugger. */
const SIGNALS: readonly Signal[] = ["SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP"];
/** Timers that are watched to learn how late they fire. */
const LOOP_SAMPLES = 5;
const LOOP_SAMPLE_MS = 10;

/** The machine that this process runs on. Signals have no listener until a command asks for them, so that Ctrl-C ends a command. */
export function systemMachine(): Machine {
  return {
    clock: systemClock,
    random: systemRandom,
    env: process.env,
    home: homedir(),
    user: userName(),
    hostname: hostname(),
    isRoot: process.getuid?.() === 0,
    pid: process.pid,
    onSignal(fn) {
      const counted = new Map<string, number>();
      const came = (signal: NodeJS.Signals) => {
        const now = systemClock.monotonic();
        if (now - (counted.get(signal) ?? Number.NEGATIVE_INFINITY) < ECHO_MS) return;
        counted.set(signal, now);
        fn(signal as Signal);
      };
      for (const signal of SIGNALS) process.on(signal, came);
      return () => {
        for (const signal of SIGNALS) process.off(signal, came);
      };
    },
    onDump(fn) {
      let busy = false;
      const came = () => {
        if (busy) return;
        busy = true;
        void fn().finally(() => {
          busy = false;
        });
      };
      process.on("SIGUSR2", came);
      return () => void process.off("SIGUSR2", came);
    },
    async eventLoop() {
      const { utilization } = performance.eventLoopUtilization();
      let delayMs = 0;
      for (let sample = 0; sample < LOOP_SAMPLES; sample++) {
        const due = systemClock.monotonic() + LOOP_SAMPLE_MS;
        await sleep(systemClock, LOOP_SAMPLE_MS);
        delayMs = Math.max(delayMs, systemClock.monotonic() - due);
      }
      return { utilization, delayMs };
    },
    memory() {
      const { rss, heapUsed } = process.memoryUsage();
      return { resident: rss, heap: heapUsed };
    },
    report: serviceReporter(process.env),
    exit: (code) => process.exit(code),
  };
}

/** A container may run under a user id that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown");
  }
}
