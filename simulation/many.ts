import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import {
  addOutcome,
  type CampaignTally,
  campaign,
  newTally,
  readState,
  seedsLeft,
  stateOf,
  writePage,
} from "./campaign/index.ts";
import { uncovered } from "./coverage.ts";
import { readMutants } from "./mutants/index.ts";
import { revision } from "./revision.ts";

/** With this many seeds, every kind of event happens. */
const ENOUGH = 200;
const KEEP_EVERY = 5;

export interface ManyOptions {
  readonly seeds: readonly number[];
  readonly mutant: string | undefined;
  readonly workers: number | undefined;
  /** File of the results, from which the next campaign continues. */
  readonly state: string | undefined;
  /** File of the page of results. */
  readonly report: string | undefined;
  readonly json: boolean;
  readonly refuse: (why: string) => never;
}

/** Runs many seeds on all cores, and prints the broken rules. */
export async function runMany(options: ManyOptions): Promise<void> {
  const { mutant, workers, json } = options;
  const tally = before(options);
  const seeds = seedsLeft(tally, options.seeds);
  let done = 0;
  const at = revision();
  await campaign({
    seeds,
    mutant,
    ...(workers === undefined ? {} : { workers }),
    onOutcome: (outcome) => {
      addOutcome(tally, outcome, at);
      if (++done % KEEP_EVERY === 0) keep(options, tally);
      if (outcome.failure !== undefined && !json)
        console.log(`seed ${outcome.seed}: ${outcome.failure.message}\n`);
      if (!json) progress(done, seeds.length, tally.failures.length);
    },
  });
  keep(options, tally);
  conclude(options, tally);
}

function before({ state, refuse }: ManyOptions): CampaignTally {
  if (state === undefined || !existsSync(state)) return newTally();
  try {
    return readState(readFileSync(state, "utf8"));
  } catch (error) {
    const why = (error as Error).message;
    return refuse(
      `--state ${state} is not a file of a campaign: ${why}. Name another file, or remove it to start again`,
    );
  }
}

/** Atomic: a campaign that is killed continues from this file. */
function keep({ state }: ManyOptions, tally: CampaignTally): void {
  if (state === undefined) return;
  writeFileSync(`${state}.new`, `${JSON.stringify(stateOf(tally), null, 1)}\n`);
  renameSync(`${state}.new`, state);
}

function progress(done: number, of: number, failed: number): void {
  if (!process.stderr.isTTY) return;
  const width = 30;
  const full = Math.round((width * done) / of);
  const bar = "#".repeat(full) + "-".repeat(width - full);
  process.stderr.write(`\r[${bar}] ${done} of ${of} seeds, ${failed} failed${done === of ? "\n" : ""}`);
}

function conclude({ mutant, report, json }: ManyOptions, tally: CampaignTally): void {
  const missing = tally.done.length >= ENOUGH && mutant === undefined ? uncovered(tally.coverage) : [];
  // The state of the mutants is beside the page.
  if (report !== undefined)
    writePage(report, { tally, mutants: readMutants(resolve(dirname(report), "mutants.json")) });
  const { failures, done } = tally;
  if (json) console.log(JSON.stringify({ ...tally, missing }));
  else {
    for (const name of missing) console.log(`never happened: ${name}`);
    console.log(`${done.length - failures.length} passed, ${failures.length} failed`);
  }
  if (failures.length > 0 || missing.length > 0) process.exitCode = 1;
}
