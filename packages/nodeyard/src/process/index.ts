export type { TcpOptions } from "@nodeyard/tree";
export type { ConfigFiles } from "../config/index.ts";
export { startBuilder, startLauncher } from "./daemon.ts";
export { Drivers, type LoadModule } from "./driver-registry.ts";
export { makeStateFolder, readText, writePrivate } from "./edge/files.ts";
export { loadModule } from "./edge/load-module.ts";
export { type LocalSshd, makeKey, missingForSshd, runOverSsh, startLocalSshd } from "./edge/sshd.ts";
export { ConfigRefused, ProcessError } from "./errors.ts";
export { type FrontWish, HTTP_SOCKET } from "./front.ts";
export { openConfig } from "./open-config.ts";
export { DEFAULT_CONFIG, openTree, type TreeLocation } from "./open-tree.ts";
export {
  changes,
  type LocalSlivers,
  probeSlivers,
  runSliverd,
  type SliverFacts,
  startLocalSlivers,
} from "./slivers/index.ts";
export { surveyImages, surveyLeaks } from "./surveys.ts";
export { GRACE_MS, STOP_MS, type Stoppable, untilStopped } from "./until-stopped.ts";
export { openState, startUp, type Up, type UpOptions } from "./up.ts";
