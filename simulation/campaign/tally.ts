import { addCoverage, type Coverage, noCoverage } from "../coverage.ts";
import type { Failure, SeedOutcome } from "./outcome.ts";

/** Results of a campaign so far; a campaign can continue from a file with them. */
export interface CampaignTally {
  /** Seeds that ended, in order. */
  readonly done: number[];
  readonly failures: Failure[];
  /** Failures of earlier revisions whose seeds passed when they were run again. */
  readonly fixed: Failure[];
  /** Seeds by the revision of the code that ran them: a long campaign may span several revisions. */
  readonly revisions: Record<string, number>;
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
  return { done: [], failures: [], fixed: [], revisions: {}, coverage: noCoverage(), sums };
}

/** The same as in a file, where a thousand consecutive seeds take no more space than two. */
export type CampaignState = Omit<CampaignTally, "done"> & { readonly done: readonly SeedRange[] };
type SeedRange = readonly [first: number, last: number];

export function stateOf(tally: CampaignTally): CampaignState {
  const ranges: [number, number][] = [];
  for (const seed of [...tally.done].sort((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range !== undefined && seed <= range[1] + 1) range[1] = seed;
    else ranges.push([seed, seed]);
  }
  return { ...tally, done: ranges };
}

/** Parses a state file. Throws an Error with the reason if it is none. */
export function readState(text: string): CampaignTally {
  const state = JSON.parse(text) as CampaignState | null;
  for (const [name, empty] of Object.entries(newTally())) {
    const value: unknown = state?.[name as keyof CampaignState];
    if (typeof value !== "object" || value === null || Array.isArray(value) !== Array.isArray(empty))
      throw new Error(`it has no "${name}"`);
  }
  const isRange = (range: unknown) =>
    Array.isArray(range) && range.length === 2 && range.every(Number.isInteger);
  if (!state!.done.every(isRange)) throw new Error('its "done" is no list of ranges of seeds');
  const seeds = ([first, last]: SeedRange) => Array.from({ length: last - first + 1 }, (_, at) => first + at);
  return { ...newTally(), ...state!, done: state!.done.flatMap(seeds) };
}

/** Seeds that are still to be run: first those that failed, because the fault may be fixed, then new ones. */
export function seedsLeft(tally: CampaignTally, all: readonly number[]): number[] {
  const known = new Set(tally.done);
  return [...tally.failures.map(({ seed }) => seed), ...all.filter((seed) => !known.has(seed))];
}

/** A fixed failure keeps its rule; its pages of facts are no longer useful. */
function short({ seed, rule, message }: Failure): Failure {
  return { seed, rule, message: message.split("\n", 1)[0]! };
}

export function addOutcome(tally: CampaignTally, outcome: SeedOutcome, revision: string): void {
  const { seed, result, failure } = outcome;
  const before = tally.failures.findIndex((one) => one.seed === seed);
  const [former] = before < 0 ? [] : tally.failures.splice(before, 1);
  if (former === undefined) {
    tally.done.push(seed);
    tally.revisions[revision] = (tally.revisions[revision] ?? 0) + 1;
  } else if (failure === undefined) tally.fixed.push(short(former));
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
