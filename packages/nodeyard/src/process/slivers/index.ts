export { type LocalSlivers, startLocalSlivers } from "./edge/local-slivers.ts";
export { probeSlivers } from "./edge/probe.ts";
export { runSliverd } from "./edge/run-sliverd.ts";
export { changes, type SliverFacts } from "./plan.ts";
