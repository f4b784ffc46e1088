export { campaign } from "./campaign.ts";
export { type Failure, runSeed, type SeedOutcome } from "./outcome.ts";
export { report } from "./report.ts";
export {
  addOutcome,
  type CampaignTally,
  newTally,
  readState,
  seedsLeft,
  stateOf,
} from "./tally.ts";
