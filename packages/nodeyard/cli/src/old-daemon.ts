import { claimPidFile, readText } from "@nodeyard/process";
import type { Command } from "commander";
import { parse } from "yaml";
import { UsageError } from "./errors.ts";
import type { GlobalOptions, Session } from "./session.ts";

/**
 * Options of nodepool-launcher and nodepool-builder that Nodeyard has otherwise: debug, foreground, pid file, logging
 * configuration.
 */
export interface OldOptions {
  readonly d?: boolean;
  readonly f?: boolean;
  readonly p?: string;
  readonly l?: string;
}

/** Units and scripts that start Nodepool's daemons work unchanged with a link of the old name (bin/nodeyard.ts). */
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
  /** Removes the pid file. To be called once, whatever happens after the start. */
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
  // Without -d and -f Nodepool's daemon goes to the background. A start that names a pid file may rely on that.
  const background =
    p !== undefined && d !== true && f !== true
      ? [
          "it stays in the foreground, where Nodepool's goes to the background: start it by systemd or another supervisor",
        ]
      : [];
  const end = p === undefined ? () => {} : claimPidFile(p, session.machine.pid);
  return { session: { ...session, options: () => options }, warnings: [...warnings, ...background], end };
}

/** Python's names of levels (logging, "Logging Levels") as the log's; CRITICAL has no equal. */
const LEVELS: Readonly<Record<string, string>> = {
  DEBUG: "debug",
  INFO: "info",
  WARNING: "warn",
  WARN: "warn",
  ERROR: "error",
  CRITICAL: "error",
};

/** What is read of a logger of the file; anything else in it has no effect. */
interface Logger {
  readonly level?: string;
  readonly handlers?: readonly string[];
}

/** Level and file of the logger "nodepool", else of the root, as Python's logging.config.dictConfig has them. */
function oldLogging(path: string): { levels?: string; file?: string; warnings: readonly string[] } {
  const text = readText(path, "the logging configuration");
  // Nodepool takes any other file as INI, for logging.config.fileConfig.
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

/** JSON is YAML. Throws UsageError where the text is no mapping. */
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
