export type * from "./contract.ts";
export * from "./errors.ts";
