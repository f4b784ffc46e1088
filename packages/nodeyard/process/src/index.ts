export type { ConfigFiles } from "@nodeyard/config";
export type { TcpOptions } from "@nodeyard/tree";
export { withAnyDriver } from "./any-driver.ts";
export { Drivers, type LoadModule } from "./driver-registry.ts";
export { examineCertificates } from "./edge/certificates.ts";
export {
  fileExists,
  isFolder,
  isSocket,
  makeKey,
  makeStateFolder,
  readText,
  writePrivate,
} from "./edge/files.ts";
export { askSocket, canListen, connectsTo, freeSpace, isLive } from "./edge/host-checks.ts";
export { makeKnownHosts } from "./edge/known-hosts.ts";
export { loadModule } from "./edge/load-module.ts";
export { claimPidFile } from "./edge/pid-file.ts";
export { runProgram, runSliverd, SLIVERD_FLAGS, sliverdProgram } from "./edge/run-sliverd.ts";
export { ConfigRefused, ProcessError } from "./errors.ts";
export type { FrontWish } from "./front.ts";
export { HTTP_SOCKET } from "./http-socket.ts";
export {
  backupTree,
  openState,
  restoreTree,
  startBuilder,
  startConnect,
  startLauncher,
  startPromotion,
  startShadow,
  startTakeover,
  startUp,
  surveyLeaks,
  surveyRows,
  takeBack,
} from "./on-demand.ts";
export { anyDriver, launcherConfig, openConfig } from "./open-config.ts";
export { CONFIG_PLACES, defaultConfig, openTree, type TreeLocation } from "./open-tree.ts";
export type { Answers, SurveyOf } from "./surveys.ts";
export { GRACE_MS, STOP_MS, type Stoppable, untilStopped } from "./until-stopped.ts";
export type { Up, UpOptions } from "./up.ts";
