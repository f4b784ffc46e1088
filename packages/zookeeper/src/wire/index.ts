export type * from "./messages.ts";
export * from "./op-code.ts";
