import { messageOf } from "@nodeyard/runtime";
import {
  createLog,
  isJournald,
  LOG_AREAS,
  LOG_LEVELS,
  type LogFormat,
  type LogLevels,
  type ProcessLog,
} from "@nodeyard/telemetry";
import { UsageError } from "./errors.ts";
import type { Session } from "./session.ts";

/** The descriptor. */
const STDERR = 2;

/**
 * The log of a process that stays: commands that come and go have none. Throws UsageError for a level or a file that cannot be
 * used.
 */
export function logOf({ io, options, machine }: Session): ProcessLog {
  const { debug, logFormat, logLevel, logFile } = options();
  const levels: LogLevels = { ...(debug === true && { all: "debug" }), ...levelsOf(logLevel ?? "") };
  // Where stderr is systemd's journal, its priorities and fields are used; elsewhere, as in a container, lines of JSON, which
  // collectors take.
  const usual = (): LogFormat => {
    if (io.isTerminal || logFile !== undefined) return "text";
    return isJournald(STDERR, machine.env.JOURNAL_STREAM) ? "journald" : "json";
  };
  const to = logFile === undefined ? { descriptor: STDERR } : { file: logFile };
  try {
    return createLog({ levels, format: logFormat ?? usual(), to });
  } catch (error) {
    throw new UsageError(`--log-file ${logFile}: ${messageOf(error)}; name a file that can be written`);
  }
}

/** `debug`, `driver=debug,tree=warn`; a level without an area is for all that are not named. Throws UsageError. */
export function levelsOf(text: string): LogLevels {
  const parts = text.split(",").filter((part) => part !== "");
  return Object.fromEntries(
    parts.map((part) => {
      const [, area = "all", word] = /^(?:(.*)=)?(.*)$/.exec(part) ?? [];
      const level = LOG_LEVELS.find((one) => one === word);
      if (level !== undefined && ["all", ...LOG_AREAS].includes(area)) return [area, level];
      throw new UsageError(
        `--log-level: ${JSON.stringify(part)} is neither LEVEL nor AREA=LEVEL; levels are ${LOG_LEVELS.join(", ")}, areas ${LOG_AREAS.join(", ")}`,
      );
    }),
  );
}
