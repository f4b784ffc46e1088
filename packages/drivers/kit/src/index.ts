// Re-exported, so that a driver needs to depend on this package only.
export {
  abortable,
  backoff,
  type Clock,
  deadline,
  defined,
  ignoring,
  keepSecret,
  messageOf,
  NodeyardError,
  present,
  type Random,
  sleep,
  succeeds,
  syncPath,
  tail,
  trim,
} from "@nodeyard/runtime";
export * from "./bucket.ts";
export * from "./cache-keys.ts";
export * from "./calls.ts";
export * from "./check.ts";
export * from "./cloud-driver.ts";
export * from "./cloud-provider.ts";
export * from "./config/cloud-config.ts";
export * from "./config/cloud-file.ts";
export type * from "./config/compiled.ts";
export * from "./config/driver-config.ts";
export * from "./config/field.ts";
export type { Grammar } from "./config/grammar.ts";
export * as Is from "./config/grammar.ts";
export * from "./config/host-key.ts";
export * as Key from "./config/key.ts";
export type { Level, Own } from "./config/levels.ts";
export { launchedLabels } from "./config/offerings.ts";
export * from "./config/reader.ts";
export type { Rule, Section, Table, Values } from "./config/section.ts";
export * from "./config/vocabulary.ts";
export type { Entry } from "./config/words.ts";
export { plainScalar, ScalarError, taggedScalar } from "./config/yaml-scalars.ts";
export type * from "./contract.ts";
export * from "./decorate.ts";
export { proxyOf } from "./edge/proxy.ts";
export * from "./errors.ts";
export * from "./faults.ts";
export * from "./http-calls.ts";
export * from "./image-steps.ts";
export * from "./leaks.ts";
export * from "./limits/connections.ts";
export * from "./limits/list-watch.ts";
export { CallRates, RateLimiter, type RateLimiterOptions } from "./limits/rate-limiter.ts";
export * from "./limits/renewed-value.ts";
export * from "./limits/shared-accounts.ts";
export * from "./limits/shared-value.ts";
export * from "./machine-steps.ts";
export * from "./node-machines.ts";
export type * from "./offers.ts";
export type * from "./order.ts";
export * from "./pages.ts";
export * from "./parted-files.ts";
export * from "./place.ts";
export * from "./resources.ts";
export * from "./run-steps.ts";
export * from "./scanner.ts";
export * from "./session.ts";
export * from "./sign-in.ts";
export * from "./sliver-machine.ts";
export type * from "./suspension-steps.ts";
export * from "./tags.ts";
export * from "./tar.ts";
export * from "./templates.ts";
export * from "./transfer.ts";
export * from "./wire.ts";
