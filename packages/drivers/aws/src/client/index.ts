export { Aws } from "./aws.ts";
export { CALLS, type Call } from "./calls.ts";
export * from "./errors.ts";
export type { Place } from "./login.ts";
