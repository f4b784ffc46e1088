import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { BUILDS, type Build } from "./broken/index.ts";
import {
  addOutcome,
  type CampaignTally,
  campaign,
  newTally,
  readState,
  report,
  seedsLeft,
  stateOf,
} from "./campaign/index.ts";
import { uncovered } from "./coverage.ts";
import { simulate } from "./run.ts";
import { timeline } from "./timeline.ts";

const HELP = `npm run simulate -- [options]

  --seed N          run one seed and tell what happened
  --seeds N         run so many (default 1000), on all cores
  --from N          the first of them (default 1)
  --workers N       at once (default: the number of cores)
  --build NAME      run a build that lacks something: ${BUILDS.join(", ")}
  --state FILE      keep what was found there, and go on from it
  --report FILE     write the page, with what catches each build that lacks something
  --json            one line of JSON at the end, none before

Exit code 0: no rule was broken and, with 200 seeds or more, everything happened that can; 1: not so; 2: wrong options.
`;

/** With so many seeds, everything that can happen does. */
const ENOUGH = 200;
const KEEP_EVERY = 5;

const { values } = options();
if (values.help === true) {
  console.log(HELP);
} else if (values.seed !== undefined) await one(number(values.seed));
else await many();

function options() {
  try {
    return parseArgs({
      options: {
        help: { type: "boolean" },
        seed: { type: "string" },
        seeds: { type: "string", default: "1000" },
        from: { type: "string", default: "1" },
        workers: { type: "string" },
        build: { type: "string" },
        state: { type: "string" },
        report: { type: "string" },
        json: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    return refuse((error as Error).message);
  }
}

function refuse(why: string): never {
  console.error(`${why}\n\n${HELP}`);
  process.exit(2);
}

function number(text: string): number {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 ? value : refuse(`${text} is no positive number`);
}

function build(): Build | undefined {
  if (values.build === undefined) return undefined;
  return BUILDS.find((name) => name === values.build) ?? refuse(`there is no build ${values.build}`);
}

async function one(seed: number): Promise<void> {
  const lacking = build();
  const tell = timeline((line) => console.log(line));
  try {
    const result = await simulate({ seed, ...(lacking && { build: lacking }), ...tell });
    console.log(JSON.stringify(result));
  } catch (error) {
    console.log((error as Error).stack);
    process.exitCode = 1;
  }
}

async function many(): Promise<void> {
  const first = number(values.from);
  const all = Array.from({ length: number(values.seeds) }, (_, index) => first + index);
  const tally = before();
  const seeds = seedsLeft(tally, all);
  let told = 0;
  const at = revision();
  await campaign({
    seeds,
    build: build(),
    ...(values.workers === undefined ? {} : { workers: number(values.workers) }),
    onOutcome: (outcome) => {
      addOutcome(tally, outcome, at);
      if (++told % KEEP_EVERY === 0) keep(tally);
      if (outcome.failure !== undefined && !values.json)
        console.log(`seed ${outcome.seed}: ${outcome.failure.message}\n`);
      progress(told, seeds.length, tally.failures.length);
    },
  });
  keep(tally);
  await conclude(tally);
}

function revision(): string {
  try {
    const words = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*"];
    return execFileSync("git", words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "unknown";
  }
}

function before(): CampaignTally {
  const { state } = values;
  if (state === undefined || !existsSync(state)) return newTally();
  try {
    return readState(readFileSync(state, "utf8"));
  } catch (error) {
    const why = (error as Error).message;
    return refuse(
      `--state ${state} is not what a campaign wrote: ${why}. Name another file, or remove it to begin anew`,
    );
  }
}

/** Whole or not at all: a campaign that is killed goes on from here. */
function keep(tally: CampaignTally): void {
  const { state } = values;
  if (state === undefined) return;
  writeFileSync(`${state}.new`, `${JSON.stringify(stateOf(tally), null, 1)}\n`);
  renameSync(`${state}.new`, state);
}

function progress(done: number, of: number, failed: number): void {
  if (!process.stderr.isTTY || values.json) return;
  const width = 30;
  const full = Math.round((width * done) / of);
  const bar = "#".repeat(full) + "-".repeat(width - full);
  process.stderr.write(`\r[${bar}] ${done} of ${of} seeds, ${failed} failed${done === of ? "\n" : ""}`);
}

async function conclude(tally: CampaignTally): Promise<void> {
  const missing = tally.done.length >= ENOUGH && values.build === undefined ? uncovered(tally.coverage) : [];
  if (values.report !== undefined) {
    const builds = await Promise.all(BUILDS.map(caught));
    writeFileSync(values.report, report({ tally, revision: revision(), builds }));
  }
  const { failures, done } = tally;
  if (values.json) console.log(JSON.stringify({ ...tally, missing }));
  else {
    for (const name of missing) console.log(`never happened: ${name}`);
    console.log(`${done.length - failures.length} passed, ${failures.length} failed`);
  }
  if (failures.length > 0 || missing.length > 0) process.exitCode = 1;
}

async function caught(lacking: Build) {
  let tried = 0;
  let found: string | undefined;
  await campaign({
    seeds: Array.from({ length: ENOUGH }, (_, index) => index + 1),
    build: lacking,
    workers: 1,
    enough: () => found !== undefined,
    onOutcome: ({ seed, failure }) => {
      tried++;
      if (failure !== undefined) found = `seed ${seed}: ${failure.rule}`;
    },
  });
  return { build: lacking, tried, caught: found };
}
