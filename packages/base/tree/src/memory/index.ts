export type { CallInfo } from "./call.ts";
export * from "./cluster.ts";
export type { Fault } from "./options.ts";
export type { AppliedWrite } from "./server.ts";
