/** A logger: facts first (ids belong there), then one line of text. pino's loggers are of this shape. */
export interface Log {
  debug(facts: object, text: string): void;
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
  error(facts: object, text: string): void;
}

/** A line of the log before it is written. */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly facts: object;
  readonly text: string;
}

/** A log that keeps its lines, for tests and the simulation. */
export function memoryLog(): Log & { readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: LogLine["level"]) => (facts: object, text: string) =>
    void lines.push({ level, facts, text });
  return { lines, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
