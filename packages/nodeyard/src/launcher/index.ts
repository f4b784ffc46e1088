export { Launcher, type LauncherConfig, type LauncherOptions } from "./launcher.ts";
export { METASTATIC, metastaticDriver } from "./metastatic/index.ts";
export type { Identity } from "./providers/serving.ts";
