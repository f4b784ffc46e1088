export { explain } from "./explain.ts";
export { labelKey, mayTry, type Offering, type OfferingFact, offeringKey } from "./offering.ts";
export { reduce } from "./reduce.ts";
export { MIN_READY } from "./requests.ts";
export { type Standing, standingCodes, standingsOf, standingsOfLabel } from "./standing.ts";
export { createState, type State } from "./state.ts";
export * from "./types.ts";
