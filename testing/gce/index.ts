export { Dropped } from "../double-server.ts";
export { type GceCall, GceCloud } from "./double/cloud.ts";
export type { GceFault, GceSettings } from "./double/settings.ts";
export { type GceSite, SITE } from "./double/site.ts";
export { type GceServer, startGce } from "./server.ts";
