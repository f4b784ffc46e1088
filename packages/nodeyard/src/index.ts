export { openApiDocument } from "./api/index.ts";
export {
  Builder,
  type BuilderConfig,
  type Disk,
  type FileFacts,
  type Intent,
  type LocalBuild,
  type Running,
} from "./builder/index.ts";
export * from "./launcher/index.ts";
export { gaugeNames, oldKeys, promName } from "./metrics/index.ts";
export * from "./operations/index.ts";
export { uninstalledDrivers } from "./process/index.ts";
export {
  Counters,
  counterNames,
  durationNames,
  type Journal,
  type Log,
  levelNames,
  memoryJournal,
  memoryLog,
} from "./telemetry/index.ts";
