export { campaign } from "./campaign.ts";
export { type Failure, runSeed, type SeedOutcome } from "./outcome.ts";
export { report } from "./report.ts";
export {
  addOutcome,
  type CampaignState,
  type CampaignTally,
  newTally,
  seedsLeft,
  stateOf,
  tallyOf,
} from "./tally.ts";
