export type { Cloud, NetworkHint } from "./cloud.ts";
export type { CloudConfigPaths } from "./files.ts";
export { type Choice, resolveCloud } from "./resolve.ts";
