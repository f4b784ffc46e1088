export type * from "./entries.ts";
export { isNewer } from "./image-table.ts";
export { poolKey, poolOf } from "./node-table.ts";
export * from "./slot-table.ts";
export * from "./unreadable.ts";
export { View, type ViewOptions } from "./view.ts";
