import { messageOf } from "@nodeyard/runtime";
import { LOG_AREAS, type Log, type LogArea, type LogLevel, type LogLevels, type ProcessLog } from "../log.ts";
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

/** Makes the text of one line. */
type LineWriter = (level: LogLevel, area: LogArea, facts: object, text: string) => string;

/**
 * The program's log. Throws when its file cannot be opened; later a full disk or a closed terminal does not affect the callers.
 * `setLevels` applies to the next line.
 */
export function createLog({ levels, format, to }: LogOptions): ProcessLog {
  const sink = new LineSink(to, (lines) =>
    areas.process.warn(
      { lines },
      "lines of the log were dropped, because the disk or its reader was too slow",
    ),
  );
  const lineOf = format === "json" ? jsonLines() : textLines(format);
  /** The lowest level that is written, by area. */
  const least = new Map<LogArea, LogLevel>();
  const logOf = (area: LogArea): Log => {
    const at = (level: LogLevel) => (facts: object, text: string) => {
      // Checked before the text is made: a line that is not written must cost nothing.
      if (PRIORITIES[level] <= PRIORITIES[least.get(area)!]) sink.write(lineOf(level, area, facts, text));
    };
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  };
  const areas = Object.fromEntries(LOG_AREAS.map((area) => [area, logOf(area)])) as Record<LogArea, Log>;
  const setLevels = (over: LogLevels) => {
    for (const area of LOG_AREAS)
      least.set(area, over[area] ?? over.all ?? levels[area] ?? levels.all ?? "info");
  };
  setLevels({});
  return {
    ...areas.process,
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
      text = new Date(now).toISOString();
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

/** One object a line. The facts are made JSON once, by the engine, and the rest is put around them: a launcher writes several lines for each step. */
function jsonLines(): LineWriter {
  const time = timestamps();
  return (level, area, facts, text) => {
    // Without the braces.
    const fields = json(facts).slice(1, -1);
    const start = `{"level":"${level}","time":"${time()}","area":"${area}",`;
    return `${start}${fields}${fields === "" ? "" : ","}"message":${JSON.stringify(text)}}\n`;
  };
}

/**
 * `TIME WARN launcher: [e: EVENT] [node_request: REQUEST] [node: NODE] message key=value`, each id only where it is known. Facts stay
 * machine-readable JSON.
 */
function textLines(format: "text" | "journald"): LineWriter {
  const time = timestamps();
  return (level, area, facts, text) => {
    const others = new Map(Object.entries(facts));
    let line = `${area}: `;
    for (const [key, name] of ANNOTATIONS) {
      const id = others.get(key);
      if (typeof id !== "string") continue;
      line += `[${name}: ${id}] `;
      others.delete(key);
    }
    line += text;
    for (const [key, value] of others) if (value != null) line += ` ${key}=${fact(value)}`;
    const start = format === "journald" ? `<${PRIORITIES[level]}>` : `${time()} ${level.toUpperCase()} `;
    return `${start}${oneLine(line)}\n`;
  };
}

/** Text from outside neither begins a line of its own nor moves the reader's cursor. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (char) =>
    char === "\n" ? "\\n" : `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

/** Words as they are; everything else as JSON, so that a value with spaces stays one. */
function fact(value: unknown): string {
  return typeof value === "string" && /^[\w./:@+-]+$/.test(value) ? value : json(value);
}

/** Facts come from drivers, too: what has no JSON does not stop the work that logs it. */
function json(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch (error) {
    return JSON.stringify({ unwritable: messageOf(error) });
  }
}
