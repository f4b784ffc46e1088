export { type CacheUser, demandOwnCaches, volumesOf } from "./caches.ts";
export { mapError } from "./errors.ts";
export { FREE, LENT, type Lending, markUse, POLICY, rest, wake, withLoans } from "./lending/index.ts";
export { readKeys, readLend, type SliverSettings, sliverKeys, specOf } from "./rspec.ts";
export { machineOf, shownMachine } from "./shown.ts";
export { type Door, SliverHost } from "./sliver-host.ts";
export { gone, granted, leaveCaches, running, settled } from "./steps.ts";
