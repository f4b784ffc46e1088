export type { Cloud, NetworkHint } from "./cloud.ts";
export { type Choice, resolveCloud } from "./resolve.ts";
export type { CloudConfigPaths } from "./search.ts";
