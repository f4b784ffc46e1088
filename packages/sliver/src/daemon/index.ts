export { type DaemonConfig, parseConfig } from "./config.ts";
export { type BackEnds, type Daemon, startDaemon } from "./edge/start.ts";
export { AlreadyRunningError, DaemonConfigError } from "./errors.ts";
