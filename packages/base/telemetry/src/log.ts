/**
 * A logger: facts first (ids belong there), then one line of text. Never throws and never waits. What has no form in JSON is replaced,
 * so any object may be a fact.
 */
export interface Log {
  debug(facts: object, text: string): void;
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
  error(facts: object, text: string): void;
}

/** Levels of the log, from the most lines to the fewest. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
/** A level of the log; lines below it are not written. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Parts of a process whose levels are set apart. `process` is what belongs to no other. */
export const LOG_AREAS = ["process", "launcher", "builder", "driver", "tree", "api", "connect"] as const;
/** One of the parts of a process. */
export type LogArea = (typeof LOG_AREAS)[number];

/** Levels by area; `all` applies to areas that are not named. */
export type LogLevels = Readonly<Partial<Record<LogArea | "all", LogLevel>>>;

/** The log of a process; its own lines are of the area `process`. */
export interface ProcessLog extends Log {
  /** The log of one area. The same object at each call. */
  area(name: LogArea): Log;
  /** Sets the levels of all areas at once; they override the ones from the start of the process. */
  setLevels(over: LogLevels): void;
  /** Calls `listener`, which must not throw, for each line that is dropped because the disk or its reader is too slow. */
  onDropped(listener: () => void): void;
  /** Resolves when all lines are written, before the process ends; a slow disk holds it up for two seconds. */
  flush(): Promise<void>;
}

/** A line of the log before it is written. */
export interface LogLine {
  readonly level: LogLevel;
  readonly facts: object;
  readonly text: string;
}

/** A log that keeps its lines, for tests and the simulation. */
export function memoryLog(): ProcessLog & { readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: LogLevel) => (facts: object, text: string) => void lines.push({ level, facts, text });
  const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  return { lines, ...log, area: () => log, setLevels: () => {}, onDropped: () => {}, flush: async () => {} };
}
