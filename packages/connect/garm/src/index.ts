export { readProviderConfig } from "./config.ts";
export { garmCall } from "./edge/call.ts";
export { type GarmCall, type GarmEnd, type GarmParts, garm } from "./garm.ts";
