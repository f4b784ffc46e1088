export { createHandler, type Handler } from "./api/handler.ts";
export { parseRequest } from "./api/parse-request.ts";
export type { Capacity } from "./core/capacity.ts";
export { ImageTrials, type MadeOf } from "./core/image-trials.ts";
export { computeLoans } from "./core/loans.ts";
export type { Observed, SliverConfig, StepKind } from "./core/plan.ts";
export { POLICIES } from "./core/profiles.ts";
export { compareVersions, type SliverRecord, type State } from "./core/record.ts";
export { sync } from "./core/sync.ts";
export { systemdUnit } from "./enrol/parts.ts";
export { ImageError } from "./errors.ts";
export type { BackEnd, CacheChange, Configured, SliverRef } from "./isolation/contract.ts";
export {
  type Cache,
  cacheId,
  committed,
  refusalOf,
  reportOf as cacheReportOf,
  startOf,
  type Volume as CacheVolume,
} from "./isolation/storage/caches.ts";
export { Archives } from "./isolation/storage/edge/archives.ts";
export { Manager, type ManagerOptions } from "./manager/manager.ts";
export { type DocumentEndpoint, SignedSource } from "./sources/signed.ts";
export { type OpenFile, Store, type StoreFiles } from "./store/store.ts";
export { USAGES, type Usage } from "./usage.ts";
