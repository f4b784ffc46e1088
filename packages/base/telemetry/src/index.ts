export * from "./counters.ts";
export { FileJournal } from "./edge/journal-file.ts";
export { readEvents, readJournal } from "./edge/journal-reader.ts";
export { isJournald } from "./edge/line-sink.ts";
export * from "./edge/process-log.ts";
export * from "./journal.ts";
export * from "./journal-events.ts";
export * from "./live.ts";
export * from "./log.ts";
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
