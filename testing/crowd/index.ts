export { type CallKind, type CrowdPlan, crowd } from "./crowd.ts";
export { assertServed } from "./served.ts";
