import { homedir, hostname, userInfo } from "node:os";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import type { Machine } from "../machine.ts";

/** A terminal sends Ctrl-C to every process of a command, and npm and shells pass it on: that is one signal, not two. */
const ECHO_MS = 300;

/** The machine that this process runs on. */
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
      let before = 0;
      const counted = new Map<string, number>();
      const came = (signal: "SIGINT" | "SIGTERM") => {
        const now = systemClock.monotonic();
        if (now - (counted.get(signal) ?? Number.NEGATIVE_INFINITY) < ECHO_MS) return;
        counted.set(signal, now);
        fn(signal, before++);
      };
      const interrupted = () => came("SIGINT");
      const terminated = () => came("SIGTERM");
      // The old launcher stops at SIGUSR1; left alone, Node would open its debugger.
      process.on("SIGINT", interrupted).on("SIGTERM", terminated).on("SIGUSR1", interrupted);
      return () =>
        void process.off("SIGINT", interrupted).off("SIGTERM", terminated).off("SIGUSR1", interrupted);
    },
    onDump(fn) {
      process.on("SIGUSR2", fn);
      return () => void process.off("SIGUSR2", fn);
    },
    memory() {
      const { rss, heapUsed } = process.memoryUsage();
      return { resident: rss, heap: heapUsed };
    },
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
