export * from "./errors.ts";
export * from "./recipes/index.ts";
export type * from "./types.ts";
export * as wire from "./wire/index.ts";
export type { Acl, ClientInfo, Request, ResponseTo, Stat } from "./wire/messages.ts";
