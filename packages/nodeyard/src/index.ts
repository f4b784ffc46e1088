export * from "./launcher/index.ts";
export * from "./operations/index.ts";
export { Counters, type Journal, type Log, memoryJournal, memoryLog } from "./telemetry/index.ts";
