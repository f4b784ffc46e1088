export { Counters, type Figure, type Histogram, type Labels, type Sample } from "./counters.ts";
export { type FileJournal, openJournal } from "./edge/journal-file.ts";
export { readEvents, readJournal } from "./edge/journal-reader.ts";
export { isJournald } from "./edge/line-sink.ts";
export { createLog, type LogFormat, type LogOptions } from "./edge/pino-log.ts";
export {
  defaultLimits,
  type History,
  JOURNAL,
  type Journal,
  type JournalEvent,
  type JournalLimits,
  memoryJournal,
  noHistory,
  type PastEvent,
  type Subject,
} from "./journal.ts";
export {
  imageEvents,
  type JournalEventName,
  journalEvents,
  logEvent,
  NODE_FIELDS,
} from "./journal-events.ts";
export { Live, LiveTask, type LiveWork, RESTS } from "./live.ts";
export {
  LOG_AREAS,
  LOG_LEVELS,
  type Log,
  type LogArea,
  type LogLevel,
  type LogLevels,
  type LogLine,
  memoryLog,
  type ProcessLog,
} from "./log.ts";
export {
  type CounterName,
  counterNames,
  type DurationMeasure,
  type DurationName,
  durationNames,
  type LevelName,
  levelNames,
  type Measure,
} from "./measures.ts";
