export { type Estimate, estimate } from "./estimate.ts";
export { TIMING_EVENTS, Timings } from "./timings.ts";
