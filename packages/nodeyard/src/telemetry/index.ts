export { type CounterName, Counters, counterNames } from "./counters.ts";
export { type FileJournal, openJournal } from "./edge/journal-file.ts";
export { type History, type PastEvent, readJournal, type Subject } from "./edge/journal-reader.ts";
export { createLog, type LogOptions } from "./edge/pino-log.ts";
export {
  JOURNAL,
  type Journal,
  type JournalEvent,
  type JournalEventName,
  journalEvents,
  memoryJournal,
} from "./journal.ts";
export { type Log, type LogLine, memoryLog } from "./log.ts";
