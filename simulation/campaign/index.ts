export { campaign } from "./campaign.ts";
export type { Failure, SeedOutcome } from "./outcome.ts";
export { report, writePage } from "./report.ts";
export { SeedThread } from "./seed-thread.ts";
export {
  addOutcome,
  type CampaignTally,
  newTally,
  readState,
  seedsLeft,
  stateOf,
} from "./tally.ts";
