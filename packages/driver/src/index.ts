export type * from "./config/compiled.ts";
export type * from "./config/driver-config.ts";
export type * from "./contract.ts";
export { DriverError, type DriverErrorKind } from "./errors.ts";
export * from "./resources.ts";
