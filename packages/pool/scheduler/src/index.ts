export { OFFER_GRACE_MS } from "./absent-offers.ts";
export { explain } from "./explain.ts";
export {
  type Failure,
  type FailureRule,
  failureRule,
  furthest,
  levelOf,
  makeGood,
  newTally,
  onFailures,
  type Tally,
  together,
} from "./failure-rule.ts";
export { type Durations, unknownReasons } from "./forecast.ts";
export type { Failures } from "./gate-table.ts";
export { type GatheringSet, holdsAny, isBefore, nextPart, planSet, type SetFacts } from "./mixed-sets.ts";
export { leastOf } from "./needs.ts";
export { REAPED } from "./node-due.ts";
export { type Outlook, outlookCodes, outlooksOf, outlooksOfLabel } from "./outlook.ts";
export { brokenRule, factOf } from "./pairing.ts";
export { elsewhereOf, isElsewhere } from "./place.ts";
export { reduce } from "./reduce.ts";
export { awaitedOffer } from "./requests.ts";
export { mayHave } from "./reuse.ts";
export type { ShareUse, ShareWeights } from "./shares.ts";
export { closedBecause, freeSlots, type PlannedSlot } from "./slot-index.ts";
export { slotLabelOf } from "./slots.ts";
export { cronOf, type DemandFacts, type SparePolicy } from "./spares.ts";
export {
  type Budget,
  type BudgetLevel,
  type BudgetUse,
  type EndedCosts,
  type Month,
  monthAt,
} from "./spending.ts";
export { createState, type State } from "./state.ts";
export { type TenantUse, tenantUses } from "./tenants.ts";
export * from "./types.ts";
export { poolUse, providerUse } from "./used.ts";
