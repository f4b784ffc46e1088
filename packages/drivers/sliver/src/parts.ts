export { mapError } from "./errors.ts";
export { FREE, LENT, type Lending, markUse, POLICY, rest, wake, withLoans } from "./lending/index.ts";
export { readKeys, readLend, type SliverSettings, sliverKeys, specOf } from "./rspec.ts";
export { type Door, SliverHost } from "./sliver-host.ts";
export { gone, granted, MIN_READY, running, settled } from "./steps.ts";
