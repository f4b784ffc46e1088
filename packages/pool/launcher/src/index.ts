export { Launcher } from "./launcher.ts";
export type { CheckOrder, RunCheck } from "./nodes/handles.ts";
export type { LauncherConfig, LauncherOptions } from "./options.ts";
export type { Identity } from "./providers/served.ts";
export { planSlots } from "./providers/slots.ts";
export { listResources, survey, surveyLeft } from "./providers/survey.ts";
export { Shadow, type ShadowDecision, type ShadowOptions } from "./shadow.ts";
export { DEMAND_EVENTS, TIMING_EVENTS } from "./timings.ts";
