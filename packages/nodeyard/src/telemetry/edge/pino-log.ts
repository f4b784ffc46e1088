import pino from "pino";
import type { Log } from "../log.ts";

/** What is logged, how and where. */
export interface LogOptions {
  readonly level: "debug" | "info" | "warn" | "error";
  /** json: one object per line, for machines. text: time, level, message and facts, for people. */
  readonly format: "json" | "text";
  /** File descriptor; default 2, stderr. */
  readonly descriptor?: number;
}

/** Bytes of lines that could not be written, at most; later ones are dropped. */
const MAX_UNWRITTEN = 4 << 20;

/**
 * The program's log. Written at once, so that the last line before a crash is there. A full disk, or a terminal that was closed, is no
 * concern of those that log: what could not be written is written with the first line that can be.
 */
export function createLog(options: LogOptions): Log {
  const destination = pino.destination({ fd: options.descriptor ?? 2, sync: true, maxLength: MAX_UNWRITTEN });
  destination.on("error", () => {});
  const stream =
    options.format === "json"
      ? destination
      : { write: (line: string) => void destination.write(textLine(line)) };
  return pino(
    {
      level: options.level,
      base: null,
      messageKey: "message",
      timestamp: () => `,"time":"${new Date(Date.now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
}

/** Ids of the old launcher's log, in its order: searches for them keep working (docs/contract/operations.md, "Logging"). */
const ANNOTATIONS = [
  ["event_id", "e"],
  ["request", "node_request"],
  ["node", "node"],
] as const;

/**
 * A JSON line of the log as text: `TIME WARN [e: EVENT] [node_request: REQUEST] [node: NODE] message key=value`, each id only
 * where it is known. Facts stay machine-readable JSON.
 */
function textLine(json: string): string {
  const { time, level, message, ...facts } = JSON.parse(json) as Record<string, unknown>;
  let text = "";
  for (const [key, name] of ANNOTATIONS)
    if (typeof facts[key] === "string") {
      text += `[${name}: ${facts[key]}] `;
      delete facts[key];
    }
  text += message;
  for (const [key, value] of Object.entries(facts)) if (value !== null) text += ` ${key}=${fact(value)}`;
  return `${time} ${String(level).toUpperCase()} ${oneLine(text)}\n`;
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
