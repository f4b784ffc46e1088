export { type Estimate, estimate } from "./estimate.ts";
export { Timings } from "./timings.ts";
