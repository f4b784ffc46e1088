export { Aws, type AwsOptions } from "./aws.ts";
export { CALLS, type Call } from "./calls.ts";
export { THROTTLED } from "./errors.ts";
export type { Place } from "./login.ts";
