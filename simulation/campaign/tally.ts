import { addCoverage, type Coverage, noCoverage } from "../coverage.ts";
import type { Failure, SeedOutcome } from "./outcome.ts";

/** What a campaign has found so far; written to a file, it can be gone on with. */
export interface CampaignTally {
  /** Seeds that ended, in the order in which they did. */
  readonly done: number[];
  readonly failures: Failure[];
  readonly coverage: Coverage;
  readonly sums: {
    virtualMs: number;
    writes: number;
    launchers: number;
    used: number;
    failed: number;
    cancelled: number;
    spoiled: number;
    died: number;
    leases: number;
  };
}

export function newTally(): CampaignTally {
  const sums = {
    virtualMs: 0,
    writes: 0,
    launchers: 0,
    used: 0,
    failed: 0,
    cancelled: 0,
    spoiled: 0,
    died: 0,
    leases: 0,
  };
  return { done: [], failures: [], coverage: noCoverage(), sums };
}

export function addOutcome(tally: CampaignTally, { seed, result, failure }: SeedOutcome): void {
  tally.done.push(seed);
  if (failure !== undefined) tally.failures.push(failure);
  if (result === undefined) return;
  addCoverage(tally.coverage, result.coverage);
  const { sums } = tally;
  sums.virtualMs += result.took;
  sums.writes += result.writes;
  sums.launchers += result.launchers;
  sums.leases += result.leases;
  for (const [outcome, times] of Object.entries(result.outcomes))
    sums[outcome as keyof typeof result.outcomes] += times;
}
