export { Launcher } from "./launcher.ts";
export { METASTATIC, metastaticDriver } from "./metastatic/index.ts";
export type { LauncherConfig, LauncherOptions } from "./options.ts";
export { listResources } from "./providers/look.ts";
export type { Identity } from "./providers/register-pools.ts";
export { type Difference, survey } from "./providers/survey.ts";
export { TIMING_EVENTS } from "./timing/index.ts";
