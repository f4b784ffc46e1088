/** What others need who make slivers on machines of their own choice: metastatic slots. */

export { mapError } from "./errors.ts";
export {
  FREE,
  isIdle,
  LENT,
  lendingOfPlaces,
  markUse,
  type Places,
  POLICY,
  rest,
  wake,
  withLoans,
} from "./lending/index.ts";
export { readKeys, readLend, sliverKeys } from "./rspec.ts";
export { SliverHost, type SliverHostOptions } from "./sliver-host.ts";
export { gone, granted, running, settled } from "./steps.ts";
