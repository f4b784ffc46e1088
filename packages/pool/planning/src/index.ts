export { compare, type PlanRow } from "./compare.ts";
export { CostBook, type CostKey, type CostRow, costKeys } from "./costs.ts";
export { DemandBook, DemandError } from "./demand.ts";
export { type Played, type PlayOptions, play } from "./play.ts";
