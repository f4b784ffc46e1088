export type { TcpOptions } from "@nodeyard/tree";
export type { ConfigFiles } from "../config/index.ts";
export { withAnyDriver } from "./any-driver.ts";
export { backupTree, restoreTree } from "./backup.ts";
export { startBuilder, startLauncher } from "./daemon.ts";
export { Drivers, type LoadModule } from "./driver-registry.ts";
export { examineCertificates } from "./edge/certificates.ts";
export { fileExists, isSocket, makeKey, makeStateFolder, readText, writePrivate } from "./edge/files.ts";
export { askSocket, canListen, connectsTo, freeSpace, isLive } from "./edge/host-checks.ts";
export { makeKnownHosts } from "./edge/known-hosts.ts";
export { loadModule } from "./edge/load-module.ts";
export { claimPidFile } from "./edge/pid-file.ts";
export { runProgram, runSliverd, SLIVERD_FLAGS, sliverdProgram } from "./edge/run-sliverd.ts";
export { ConfigRefused, ProcessError } from "./errors.ts";
export { type FrontWish, HTTP_SOCKET } from "./front.ts";
export {
  anyDriver,
  launcherConfig,
  openConfig,
  uninstalledDrivers,
  validatorDrivers,
} from "./open-config.ts";
export { DEFAULT_CONFIG, openTree, type TreeLocation } from "./open-tree.ts";
export { type Answers, type SurveyOf, surveyLeaks, surveyRows } from "./surveys.ts";
export { GRACE_MS, STOP_MS, type Stoppable, untilStopped } from "./until-stopped.ts";
export { openState, startUp, type Up, type UpOptions } from "./up.ts";
