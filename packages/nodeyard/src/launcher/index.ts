export { Launcher, type LauncherConfig, type LauncherOptions } from "./launcher.ts";
export type { Identity } from "./providers/serving.ts";
