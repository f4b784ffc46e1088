export { type CounterName, Counters, counterNames } from "./counters.ts";
export { type FileJournal, openJournal } from "./edge/journal-file.ts";
export { createLog, type LogOptions } from "./edge/pino-log.ts";
export {
  type Journal,
  type JournalEvent,
  type JournalEventName,
  journalEvents,
  memoryJournal,
} from "./journal.ts";
export { type Log, type LogLine, memoryLog } from "./log.ts";
