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

/** A JSON line of the log as text: `2026-01-31T10:00:00.000Z WARN message key=value`. Facts stay machine-readable JSON. */
function textLine(json: string): string {
  const { time, level, message, ...facts } = JSON.parse(json) as Record<string, unknown>;
  const rest = Object.entries(facts).map(([key, value]) => ` ${key}=${fact(value)}`);
  return `${time} ${String(level).toUpperCase()} ${message}${rest.join("")}\n`;
}

function fact(value: unknown): string {
  return typeof value === "string" && /^[\w./:@+-]+$/.test(value) ? value : (JSON.stringify(value) ?? "null");
}
