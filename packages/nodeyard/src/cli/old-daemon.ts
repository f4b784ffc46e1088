import type { Command } from "commander";
import { parse } from "yaml";
import { claimPidFile, readText } from "../process/index.ts";
import { UsageError } from "./errors.ts";
import type { GlobalOptions, Session } from "./session.ts";

/** Options of nodepool-launcher and nodepool-builder that Nodeyard has otherwise. */
export interface OldOptions {
  readonly d?: boolean;
  readonly f?: boolean;
  readonly p?: string;
  readonly l?: string;
}

export function addOldOptions(command: Command): Command {
  return command
    .option("-d", "as --debug; an option of Nodepool's daemons, as the next three")
    .option("-f", "stay in the foreground, which it always does")
    .option("-p <file>", "write the process id to this file, and remove it at the end")
    .option("-l <file>", "logging configuration of Nodepool (YAML or JSON): level and file are used");
}

/** A daemon started with Nodepool's options, and the remarks on these options. */
export interface OldDaemon {
  readonly session: Session;
  readonly warnings: readonly string[];
  /** Removes the pid file. */
  end(): void;
}

/** Translates old options. Throws UsageError, or ProcessError for a pid file of a process that runs. */
export function oldDaemon(session: Session, { d, f, p, l }: OldOptions): OldDaemon {
  const { levels, file, warnings } = l === undefined ? { warnings: [] } : oldLogging(l);
  const own = session.options();
  const options: GlobalOptions = {
    ...own,
    ...(d === true && { debug: true }),
    // As in Nodepool, -d counts for more than the file.
    ...(d !== true && own.logLevel === undefined && levels !== undefined && { logLevel: levels }),
    ...(own.logFile === undefined && file !== undefined && { logFile: file }),
  };
  const background =
    p !== undefined && d !== true && f !== true
      ? [
          "it stays in the foreground, where Nodepool's goes to the background: start it by systemd or another supervisor",
        ]
      : [];
  const end = p === undefined ? () => {} : claimPidFile(p, session.machine.pid);
  return { session: { ...session, options: () => options }, warnings: [...warnings, ...background], end };
}

const LEVELS: Readonly<Record<string, string>> = {
  DEBUG: "debug",
  INFO: "info",
  WARNING: "warn",
  WARN: "warn",
  ERROR: "error",
  CRITICAL: "error",
};

interface Logger {
  readonly level?: string;
  readonly handlers?: readonly string[];
}

/** Level and file of the logger "nodepool", else of the root, as Python's logging.config.dictConfig has them. */
function oldLogging(path: string): { levels?: string; file?: string; warnings: readonly string[] } {
  const text = readText(path, "the logging configuration");
  if (!/\.(ya?ml|json)$/.test(path))
    return {
      warnings: [
        `nothing of ${path} is used: use --log-level, --log-file and --log-format in place of an INI file`,
      ],
    };
  const config = mapping(path, text);
  const loggers = (config.loggers ?? {}) as Record<string, Logger | undefined>;
  const logger = { ...(config.root as Logger | undefined), ...loggers.nodepool };
  const handlers = (config.handlers ?? {}) as Record<string, { readonly filename?: string } | undefined>;
  const file = logger.handlers?.map((name) => handlers[name]?.filename).find((name) => name !== undefined);
  const levels = LEVELS[String(logger.level).toUpperCase()];
  const used = [levels && `level ${levels}`, file && `file ${file}`].filter((one) => one !== undefined);
  const what = used.length === 0 ? "nothing" : `only ${used.join(" and ")}`;
  return {
    ...(levels !== undefined && { levels }),
    ...(file !== undefined && { file }),
    warnings: [
      `of ${path} ${what} is used: formatters, filters and other loggers have no effect; see --log-level, --log-file and --log-format`,
    ],
  };
}

function mapping(path: string, text: string): Record<string, unknown> {
  try {
    const value: unknown = parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // Said below.
  }
  throw new UsageError(`-l ${path} holds no mapping of YAML or JSON`);
}
