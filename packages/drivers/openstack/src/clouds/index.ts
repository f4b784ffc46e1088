export type { Cloud, NetworkHint } from "./cloud.ts";
export type { CloudConfigPaths } from "./files.ts";
export { resolveCloud } from "./resolve.ts";
