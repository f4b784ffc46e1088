// What the handles of DriverContext are and need, so that a driver depends on this package alone.
export {
  backoff,
  type Clock,
  deadline,
  messageOf,
  NodeyardError,
  type Random,
  sleep,
} from "@nodeyard/runtime";
export * from "./adapter/index.ts";
export { Calls, type MapError } from "./calls.ts";
export { CONTRACT, driverProblem, METHODS, providerProblem } from "./check.ts";
export * from "./config/cloud.ts";
export { commonProvider, launchKeys, loginKeys, poolKeys } from "./config/common-keys.ts";
export type * from "./config/compiled.ts";
export * from "./config/driver-config.ts";
export { type About, Field, type Note, type PathKind } from "./config/field.ts";
export * from "./config/images.ts";
export { commonOf, compileLabels, compilePools } from "./config/pools.ts";
export { type ConfigFinding, Reader } from "./config/reader.ts";
export * from "./config/section.ts";
export * from "./config/vocabulary.ts";
export * from "./config/words.ts";
export type * from "./contract.ts";
export {
  type CallName,
  type CallOutcome,
  decorate,
  type Layer,
  type ProviderMethods,
  provide,
  timing,
  typedErrors,
} from "./decorate.ts";
export { asDriverError, DriverError, type DriverErrorKind } from "./errors.ts";
export {
  idText,
  type KnownNodes,
  type LeakSweepResult,
  leaked,
  memoryEvidence,
  resourceKey,
  type SweepContext,
} from "./leaks.ts";
export { RateLimiter, type RateLimiterOptions } from "./limits/rate-limiter.ts";
export { abortable, SharedValue, type SharedValueOptions } from "./limits/shared-value.ts";
export type * from "./offers.ts";
export * from "./resources.ts";
export { type RunOptions, runSteps, type Step, type StepContext } from "./run-steps.ts";
export { driverScanner } from "./scanner.ts";
export * from "./tags.ts";
export { formatTemplate, requestFields } from "./templates.ts";
