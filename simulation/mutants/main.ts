import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { readState, writePage } from "../campaign/index.ts";
import { changesSince, revision } from "../revision.ts";
import { MUTANTS, mutantOf } from "./list.ts";
import { fileOf, type Mutant, mutated, StaleMutant } from "./mutant.ts";
import { runNight } from "./night.ts";
import {
  ENOUGH,
  isCaught,
  isDecided,
  type MutantState,
  readMutants,
  scoreOf,
  type Verdict,
} from "./state.ts";
import { Baseline, BaselineFailed, tryMutant } from "./try.ts";

const HELP = `npm run mutate -- [options]

Applies small faults to the product, one at a time, and reports which of them the simulation's seeds and the tests catch.

  --mutant NAME     only this one; can be repeated
  --changed COMMIT  only those whose file differs from that commit; with none, --at-most of the list in turn, by the number of commits
  --at-most N       with --changed: mutants to run, at most (default 6: a minute of two idle cores)
  --part N/M        only one of M parts of the list: the one with the number N modulo M, for instance the number of commits
  --new             only those that were not tried yet, and those that survived
  --generated       mechanical mutants of the code that decides and writes instead, each with a seed, the tests of its room, and the other
                    seeds (4 if not given); all of it takes a night. What was decided for the same source is not run again
  --file PATH       with --generated: only this file, by the end of its path, such as scheduler/hosts; can be repeated
  --seeds N         seeds for each mutant, at most (default ${ENOUGH})
  --workers N       mutants at once (default: the number of cores)
  --limit SECONDS   for one seed or test file, at most (default 180): a run that takes longer catches nothing
  --state FILE      state of each mutant (default docs/reference/mutants.json or generated-mutants.json)
  --keep            write the results to the state and, for the default one, to docs/reference/simulation.md
  --list            name all mutants and what catches them (with --generated: how many of each file, and which survive), and run nothing
  --json            one line of JSON at the end, none before

Exit code 0: 90 % or more of all mutants that were tried to the end are caught, and no mutant that was caught before survived; 1: otherwise,
or a mutant no longer fits the source; 2: wrong options.
`;

const WANTED_SCORE = 0.9;
const STATE = "docs/reference/mutants.json";
const GENERATED = "docs/reference/generated-mutants.json";
const SEEDS = "docs/reference/simulation.json";
const PAGE = "docs/reference/simulation.md";

const { values } = options();
const stateFile = values.state ?? STATE;
if (values.help === true) console.log(HELP);
else if (values.generated) await generated();
else {
  refuseStale();
  if (values.list) list(readMutants(stateFile));
  else await run();
}

function options() {
  try {
    return parseArgs({
      options: {
        help: { type: "boolean" },
        mutant: { type: "string", multiple: true },
        part: { type: "string" },
        changed: { type: "string" },
        "at-most": { type: "string", default: "6" },
        new: { type: "boolean", default: false },
        generated: { type: "boolean", default: false },
        file: { type: "string", multiple: true, default: [] },
        seeds: { type: "string" },
        workers: { type: "string", default: String(availableParallelism()) },
        limit: { type: "string", default: "180" },
        state: { type: "string" },
        keep: { type: "boolean", default: false },
        list: { type: "boolean", default: false },
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
  return Number.isSafeInteger(value) && value >= 0 ? value : refuse(`${text} is not a number`);
}

function partOf(text: string): readonly [turn: number, parts: number] {
  const [, turn, parts] = /^(\d+)\/([1-9]\d*)$/.exec(text) ?? refuse(`${text} is not a part such as 3/10`);
  return [number(turn!), number(parts!)];
}

/** All mutants, whichever are run: a mutant that no longer fits its source tests nothing. */
function refuseStale(): void {
  const stale = MUTANTS.flatMap((mutant) => {
    try {
      mutated(mutant);
      return [];
    } catch (error) {
      if (!(error instanceof StaleMutant)) throw error;
      return [error.message];
    }
  });
  if (stale.length === 0) return;
  console.error(stale.join("\n"));
  process.exit(1);
}

function list(state: MutantState): void {
  for (const mutant of MUTANTS)
    console.log(`${mutant.name} (${mutant.breaks}): ${describe(mutant, state[mutant.name])}`);
}

function describe({ survives }: Mutant, verdict: Verdict | undefined): string {
  if (verdict?.seed !== undefined) return `seed ${verdict.seed.number}: ${verdict.seed.rule}`;
  if (verdict?.test !== undefined) return `${verdict.test.file}: ${verdict.test.name}`;
  const endless = verdict !== undefined && verdict.endless > 0 ? `, ${verdict.endless} runs did not end` : "";
  const tried = verdict === undefined ? "not tried yet" : `survives ${verdict.tried} seeds${endless}`;
  return survives === undefined ? tried : `${tried} (${survives})`;
}

function chosen(state: MutantState): readonly Mutant[] {
  const { mutant: names, part, changed } = values;
  if (names !== undefined) return names.map((name) => mutantOf(name));
  if (values.new) return MUTANTS.filter(({ name }) => !isCaught(state[name]));
  // Known survivors are tried when the whole list is.
  const promising = MUTANTS.filter(({ name }) => state[name] === undefined || isCaught(state[name]));
  if (changed !== undefined) return ofChanged(promising, changed, number(values["at-most"]));
  if (part === undefined) return MUTANTS;
  const [turn, parts] = partOf(part);
  return promising.filter((_, index) => index % parts === turn % parts);
}

/** Those of files that changed since a commit, or, without any, some of all. Each commit begins at another place of the list. */
function ofChanged(mutants: readonly Mutant[], since: string, most: number): readonly Mutant[] {
  const { files, commits } = changesSince(since) ?? refuse(`${since} is no commit of this repository`);
  const touched = mutants.filter((mutant) => files.has(fileOf(mutant)));
  const from = touched.length > 0 ? touched : mutants;
  const begin = from.length === 0 ? 0 : (commits * most) % from.length;
  return [...from.slice(begin), ...from.slice(0, begin)].slice(0, most);
}

async function generated(): Promise<void> {
  const limitMs = number(values.limit) * 1_000;
  const options = {
    files: values.file,
    state: values.state ?? GENERATED,
    list: values.list,
    again: values.new,
    keep: values.keep && !values.list,
    seeds: number(values.seeds ?? "4"),
    workers: Math.max(1, number(values.workers)),
    limitMs,
    revision: revision(),
  };
  await runNight(options, new Baseline(limitMs));
}

async function run(): Promise<void> {
  const before = readMutants(stateFile);
  const state: MutantState = { ...before };
  const left = [...chosen(before)];
  const all = left.length;
  const limitMs = number(values.limit) * 1_000;
  const baseline = new Baseline(limitMs);
  const at = revision();
  const lost: string[] = [];
  const broken: string[] = [];
  const began = performance.now();
  let done = 0;
  const work = async () => {
    for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
      const { name } = mutant;
      const known = before[name];
      try {
        const seeds = number(values.seeds ?? String(ENOUGH));
        const verdict = await tryMutant(mutant, { seeds, limitMs, revision: at, before: known }, baseline);
        state[name] = verdict;
        // A seed that caught it may take another course now: a mutant is lost only if it survives everything that might catch it.
        if (isCaught(known) && !isCaught(verdict) && isDecided(verdict)) lost.push(name);
        say(`${name}: ${describe(mutant, verdict)}`);
        if (isCaught(verdict) && mutant.survives !== undefined)
          say(`${name}: is caught now; remove its reason for surviving from the list`);
      } catch (error) {
        if (!(error instanceof BaselineFailed)) throw error;
        broken.push(error.message);
        say(error.message);
      }
      done++;
      keep(state);
      const minutes = ((performance.now() - began) / 60_000).toFixed(1);
      const { tried, caught } = scoreOf(state);
      say(`  ${done} of ${all} in ${minutes} min; ${caught} of ${tried} tried ones are caught`);
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, number(values.workers)) }, work));
  conclude(state, lost, broken);
}

function say(line: string): void {
  if (!values.json) console.log(line);
}

/** In the order of the list; atomic. */
function keep(state: MutantState): void {
  if (!values.keep) return;
  const sorted = Object.fromEntries(
    MUTANTS.flatMap(({ name }) => (state[name] === undefined ? [] : [[name, state[name]]])),
  );
  writeFileSync(`${stateFile}.new`, `${JSON.stringify(sorted, null, 1)}\n`);
  renameSync(`${stateFile}.new`, stateFile);
}

function conclude(state: MutantState, lost: readonly string[], broken: readonly string[]): void {
  const { tried, caught, share } = scoreOf(state);
  if (values.keep && stateFile === STATE && existsSync(SEEDS))
    writePage(PAGE, { tally: readState(readFileSync(SEEDS, "utf8")), mutants: state });
  if (values.json) console.log(JSON.stringify({ score: share, tried, caught, lost, broken, mutants: state }));
  else {
    for (const name of lost) console.log(`${name} was caught before and survives now`);
    for (const why of broken) console.log(why);
    const of = `${caught} of ${tried} mutants that were tried (${MUTANTS.length} in the list)`;
    console.log(`score ${(100 * share).toFixed(1)} %, wanted ${100 * WANTED_SCORE} %: ${of}`);
  }
  if (share < WANTED_SCORE || lost.length > 0 || broken.length > 0) process.exitCode = 1;
}
