import pino from "pino";
import { LOG_AREAS, type LogArea, type LogLevel, type LogLevels, type ProcessLog } from "../log.ts";
import { LineSink } from "./line-sink.ts";

/** json: one object per line, for machines. text: for people and searches. journald: text with sd-daemon's level, without the time. */
export type LogFormat = "json" | "text" | "journald";

/** Levels, format and destination of the log. */
export interface LogOptions {
  /** By area; the default of `all` is info. */
  readonly levels: LogLevels;
  readonly format: LogFormat;
  /** A file's path, or a descriptor such as 2, stderr. */
  readonly to: { readonly file: string } | { readonly descriptor: number };
}

/** The program's log. Throws when its file cannot be opened; later a full disk or a closed terminal does not affect the callers. */
export function createLog({ levels, format, to }: LogOptions): ProcessLog {
  const sink = new LineSink(to, (lines) =>
    areas.process.warn(
      { lines },
      "lines of the log were dropped, because the disk or its reader was too slow",
    ),
  );
  const write = format === "json" ? undefined : lineOf(format);
  const root = pino(
    {
      level: "debug",
      base: null,
      messageKey: "message",
      timestamp: timestamps(),
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (json: string) => sink.write(write === undefined ? json : write(json)) },
  );
  const areas = Object.fromEntries(LOG_AREAS.map((area) => [area, root.child({ area })])) as Record<
    LogArea,
    pino.Logger
  >;
  const setLevels = (over: LogLevels) => {
    for (const area of LOG_AREAS)
      areas[area].level = over[area] ?? over.all ?? levels[area] ?? levels.all ?? "info";
  };
  setLevels({});
  const { process } = areas;
  return {
    debug: (facts, text) => process.debug(facts, text),
    info: (facts, text) => process.info(facts, text),
    warn: (facts, text) => process.warn(facts, text),
    error: (facts, text) => process.error(facts, text),
    area: (name) => areas[name],
    setLevels,
    onDropped: (listener) => {
      sink.onDropped = listener;
    },
    flush: () => sink.flush(),
  };
}

/** The time of a line. Lines of one millisecond share its text: to format it takes microseconds, several thousand times a second. */
function timestamps(): () => string {
  let ms = Number.NaN;
  let text = "";
  return () => {
    const now = Date.now();
    if (now !== ms) {
      ms = now;
      text = `,"time":"${new Date(now).toISOString()}"`;
    }
    return text;
  };
}

/** Priorities of sd-daemon(3). */
const PRIORITIES: Readonly<Record<LogLevel, number>> = { error: 3, warn: 4, info: 6, debug: 7 };

/** Ids of the old launcher's log, in its order: searches for them keep working (docs/contract/operations.md, "Logging"). */
const ANNOTATIONS = [
  ["event_id", "e"],
  ["request", "node_request"],
  ["node", "node"],
] as const;

/**
 * Makes a JSON line of the log text: `TIME WARN launcher: [e: EVENT] [node_request: REQUEST] [node: NODE] message key=value`, each id only
 * where it is known. Facts stay machine-readable JSON.
 */
function lineOf(format: "text" | "journald"): (json: string) => string {
  return (json) => {
    const { time, level, area, message, ...facts } = JSON.parse(json) as Record<string, unknown>;
    let text = `${area}: `;
    for (const [key, name] of ANNOTATIONS)
      if (typeof facts[key] === "string") {
        text += `[${name}: ${facts[key]}] `;
        delete facts[key];
      }
    text += message;
    for (const [key, value] of Object.entries(facts)) if (value !== null) text += ` ${key}=${fact(value)}`;
    const start =
      format === "journald"
        ? `<${PRIORITIES[level as LogLevel]}>`
        : `${time} ${String(level).toUpperCase()} `;
    return `${start}${oneLine(text)}\n`;
  };
}

/** Text from outside neither begins a line of its own nor moves the reader's cursor. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (char) =>
    char === "\n" ? "\\n" : `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

function fact(value: unknown): string {
  return typeof value === "string" && /^[\w./:@+-]+$/.test(value) ? value : (JSON.stringify(value) ?? "null");
}
