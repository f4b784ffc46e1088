export { CAPACITY_KEYS, type Capacity, type CapacityKey, promised } from "./capacity.ts";
export { assignCores, type CoreSets } from "./cores.ts";
export { type Delivered, type Delivery, deliverFull, deliverPartial } from "./deliver.ts";
export { readGetSlivers } from "./documents/get-slivers.ts";
export { readSignedDocument, readTicket } from "./documents/signed-document.ts";
export type { TagTable } from "./documents/tags.ts";
export { expire } from "./expire.ts";
export { computeLimits, type Limits, type MachineLimits } from "./limits.ts";
export { computeLoans, type LoanResult } from "./loans/compute.ts";
export { type MachineFacts, type Stated, sharedWithSlivers } from "./measured.ts";
export { type Caller, permitTarget, permitWithoutTarget } from "./permit.ts";
export { POLICIES, type Policy } from "./policy.ts";
export type { SliverConfig } from "./reconcile/config.ts";
export type { Observed } from "./reconcile/observed.ts";
export type { StepKind, Task } from "./reconcile/plan.ts";
export { hasChanged, type Machine, type SyncResult, sync } from "./reconcile/sync.ts";
export {
  EMPTY_STATE,
  type Given,
  type Incoming,
  type Local,
  type SliverRecord,
  type State,
  withLocal,
} from "./record.ts";
export { countAll, countTraffic, DAY, dailyRates, type Sent, type Traffic } from "./traffic.ts";
export { look, monotonicAt, type TrustedTime, trustedSeconds, trustFirst } from "./trusted-time.ts";
export { useTicket } from "./used-tickets.ts";
export { compareVersions, NO_VERSION, type Version, versionText } from "./version.ts";
