import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { parse } from "yaml";
import { endOf, onDisk, sourcesIn, testsAt } from "./files.ts";
import { faultsOf, functionOf, generatedMutant, ROOMS, roomOf, TESTS } from "./generated.ts";
import { type FileReach, reachedName } from "./reach.ts";
import { type Baseline, BaselineFailed, lineOf, type TestGroup, tryMutant } from "./try.ts";

/** Results of a file's generated mutants, in the order of its source: `t` a test caught it, `s` a seed did, `-` nothing, `=` it changes nothing, `.` not tried. */
interface FileResults {
  /** Of the source that the results are for. */
  readonly hash: string;
  readonly verdicts: string;
}

/** By the end of the file's path. */
type NightState = Record<string, FileResults>;

export interface NightOptions {
  /** Ends of paths; none: all files of the deciding rooms. */
  readonly files: readonly string[];
  /** The results, and beside them, with the ending `.md`, the page. */
  readonly state: string;
  /** Nothing is run: what is known of each file is printed. */
  readonly list: boolean;
  /** Survivors are tried again. */
  readonly again: boolean;
  readonly keep: boolean;
  readonly seeds: number;
  readonly workers: number;
  readonly limitMs: number;
  readonly revision: string;
}

/** Milliseconds for all tests of the rooms, once. */
const REACH_MS = 3_600_000;
const EQUIVALENT = new URL("./equivalent.yaml", import.meta.url);

/** Tries the generated mutants of files. What was decided for the present source of a file is not tried again. */
export async function runNight(options: NightOptions, baseline: Baseline): Promise<void> {
  const state: NightState = existsSync(options.state) ? JSON.parse(readFileSync(options.state, "utf8")) : {};
  const files = Object.keys(ROOMS)
    .flatMap((room) => sourcesIn(room).map((file) => ({ at: endOf(file, room), file })))
    .filter(({ at }) => options.files.length === 0 || options.files.includes(at));
  const groups = options.list ? new Map<string, TestGroup>() : await testGroups();
  for (const { at, file } of files) {
    const source = readFileSync(onDisk(file), "utf8");
    const names = [...faultsOf(source).keys()];
    const hash = createHash("sha256").update(source).digest("hex").slice(0, 12);
    const known = state[at];
    const verdicts = [...(known?.hash === hash ? known.verdicts : ".".repeat(names.length))];
    const left = [...names.keys()].filter(
      (index) => !options.list && (verdicts[index] === "." || (options.again && verdicts[index] === "-")),
    );
    const work = async () => {
      for (let index = left.shift(); index !== undefined; index = left.shift()) {
        verdicts[index] = await verdictOf(at, names[index]!);
        state[at] = { hash, verdicts: verdicts.join("") };
        if (options.keep) keep(state, options.state);
      }
    };
    await Promise.all(Array.from({ length: options.workers }, work));
    for (const [index, name] of names.entries())
      if ("-=".includes(verdicts[index]!)) verdicts[index] = name in (equivalents()[at] ?? {}) ? "=" : "-";
    state[at] = { hash, verdicts: verdicts.join("") };
    if (options.keep) keep(state, options.state);
    const lives = names.filter((_, index) => verdicts[index] === "-");
    const open = verdicts.filter((verdict) => verdict === ".").length;
    const untried = open === 0 ? "" : `, ${open} not tried`;
    console.log(`${at}: ${names.length} mutants, ${lives.length} survive${untried}`);
    for (const name of lives) console.log(`  ${name}`);
  }

  async function verdictOf(at: string, name: string): Promise<string> {
    try {
      const { seed, test } = await tryMutant(
        generatedMutant(`${at} ${name}`),
        {
          ...options,
          first: roomOf(at).first,
          before: undefined,
          together: groups.get(reachedName(at, functionOf(name))) ?? { files: [], ms: 0 },
        },
        baseline,
      );
      return seed !== undefined ? "s" : test !== undefined ? "t" : "-";
    } catch (error) {
      if (!(error instanceof BaselineFailed)) throw error;
      console.log(error.message);
      return ".";
    }
  }
}

/** The tests that call each function of the rooms, the quickest first: no other test can catch a fault in it. */
async function testGroups(): Promise<ReadonlyMap<string, TestGroup>> {
  const rooms = Object.keys(ROOMS).join(",");
  const found = (await lineOf("./run-reach.ts", [rooms, ...TESTS.map(testsAt)], REACH_MS)) as
    | readonly FileReach[]
    | undefined;
  if (found === undefined) throw new BaselineFailed("the tests of the rooms did not end");
  const groups = new Map<string, { files: string[]; ms: number }>();
  for (const { file, ms, reached } of [...found].sort((one, other) => one.ms - other.ms))
    for (const name of reached) {
      const group = groups.get(name) ?? { files: [], ms: 0 };
      group.files.push(file);
      group.ms += ms;
      groups.set(name, group);
    }
  return groups;
}

/** Why a survivor changes nothing, by the end of its file's path and its name. */
function equivalents(): Readonly<Record<string, Readonly<Record<string, string>>>> {
  return parse(readFileSync(EQUIVALENT, "utf8")) ?? {};
}

function keep(state: NightState, file: string): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(state, null, 1)}\n`);
  renameSync(`${file}.new`, file);
  writeFileSync(file.replace(/json$/, "md"), page(state));
}

function page(state: NightState): string {
  const rows = Object.entries(state).map(([at, { verdicts }]) => {
    const of = (mark: string) => [...verdicts].filter((each) => each === mark).length;
    return {
      at,
      all: verdicts.length,
      seed: of("s"),
      test: of("t"),
      equal: of("="),
      lives: of("-"),
      open: of("."),
    };
  });
  const sum = (pick: (row: (typeof rows)[number]) => number) => rows.reduce((all, row) => all + pick(row), 0);
  const caught = sum(({ seed, test }) => seed + test);
  const share = (100 * caught) / Math.max(1, caught + sum(({ lives }) => lives));
  return `# Generated mutants

Written by \`npm run mutate -- --generated --keep\`; do not edit. How it works: [the design](../design/simulation.md). Each file has its
mechanical faults: a guard or a statement with an effect is left out, a condition negated, an \`await\` left out. Of those that were tried in
${rows.length} files and change something, ${share.toFixed(1)} % are caught.

| File | Mutants | Caught by tests | By seeds | Change nothing | Survive | Not tried |
|---|---|---|---|---|---|---|
${rows.map(({ at, all, seed, test, equal, lives, open }) => `| ${at} | ${all} | ${test} | ${seed} | ${equal} | ${lives} | ${open} |\n`).join("")}`;
}
