export { type DaemonConfig, parseConfig } from "./config.ts";
export { type Dismantling, dismantle, dismantling } from "./edge/dismantle.ts";
export { ownId } from "./edge/own-id.ts";
export { type BackEnds, type Daemon, startDaemon } from "./edge/start.ts";
export { AlreadyRunningError, DaemonConfigError } from "./errors.ts";
