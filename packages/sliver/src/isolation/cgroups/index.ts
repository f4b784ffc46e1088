export { Cgroups, PARENT } from "./edge/cgroups.ts";
export { type CgroupLayout, CONTROLLERS, type Controller, readLayout, strayingGroup } from "./layout.ts";
export { type LimitWrites, limitWrites, type Write } from "./limits.ts";
