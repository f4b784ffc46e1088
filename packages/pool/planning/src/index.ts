export { compare, type PlanRow, type TenantRow, type WaitFigures } from "./compare.ts";
export { CostBook, type CostKey, type CostRow, costKeys } from "./costs.ts";
export { DemandBook, DemandError } from "./demand.ts";
export { type Played, type PlayOptions, play } from "./play.ts";
export { ShadowBook, type ShadowRow, type ShadowSummary } from "./shadow/book.ts";
export { type ShadowDifference, shadowDifferences } from "./shadow/differences.ts";
