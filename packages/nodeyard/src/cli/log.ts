import { createLog, type Log } from "../telemetry/index.ts";
import type { Session } from "./session.ts";

/** The log of a process that stays: commands that come and go have none. */
export function logOf({ io, options }: Session): Log {
  const { debug, logFormat } = options();
  return createLog({
    level: debug === true ? "debug" : "info",
    format: logFormat ?? (io.isTerminal ? "text" : "json"),
  });
}
