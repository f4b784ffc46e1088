export { ListenError } from "./errors.ts";
export { isLoopback } from "./http/caller.ts";
export { HttpApi, type ListenAddress } from "./http-api.ts";
export type { Known, Page, Readiness, Sources, Work } from "./known.ts";
