export { Aws, type To } from "./aws.ts";
export { CALLS, type Call } from "./calls.ts";
export { type AwsFault, codeOf, faultOf, THROTTLED } from "./errors.ts";
export type { Place } from "./login.ts";
export { CallPace } from "./pace.ts";
export { allPages } from "./pages.ts";
