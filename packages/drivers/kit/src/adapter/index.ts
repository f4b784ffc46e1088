export * from "./driver.ts";
export type * from "./types.ts";
