import { homedir, hostname, userInfo } from "node:os";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import type { Machine } from "../machine.ts";

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
      const interrupted = () => fn("SIGINT", before++);
      const terminated = () => fn("SIGTERM", before++);
      process.on("SIGINT", interrupted).on("SIGTERM", terminated);
      return () => void process.off("SIGINT", interrupted).off("SIGTERM", terminated);
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
