/** `.ci/run` behind its installation: chooses the suites of this change, runs them side by side, and says how each ended. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { counted } from "@nodeyard/runtime";
import { patient } from "../../testing/patience.ts";
import { type Choice, choose } from "./choose.ts";
import { recordPasses, situationOf } from "./history.ts";
import { isTooLate, limitOf, MOST_MINUTES, nextSuite, withDependents } from "./order.ts";
import { type Ended, endAll, environmentOf, runSuite } from "./run-suite.ts";
import type { Suite } from "./suite.ts";
import { SUITES } from "./suites.ts";
import { failedTests, failureOf, secondTries } from "./told.ts";

const HELP = `.ci/run [--all | --since COMMIT] [--list]

Checks this checkout as CI does. Some suites run each time; those with servers of their own run when something that they cover changed since
the commit that they passed by .ci/last-whole, and otherwise in turn, two for each commit. On a slow machine those that would end after ${MOST_MINUTES} minutes are left out.

  --all            every suite, with its largest numbers and however long it takes
  --since COMMIT   count as changed what differs from COMMIT
  --list           say what would run, and why, and run nothing

Suites that passed are written to .ci/last-whole, to be committed, unless the checkout differs from its commit.
Exit code 0: all that ran passed; 1: one failed; 2: wrong options.
`;

const root = fileURLToPath(new URL("../..", import.meta.url));
const options = readOptions();
if (options.help) console.log(HELP);
else await main();

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        all: { type: "boolean", default: false },
        since: { type: "string" },
        list: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
    if (values.all && values.since !== undefined) throw new Error("--all and --since exclude each other");
    return { ...values, situation: situationOf(root, values.all ? "all" : values.since) };
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`);
    return process.exit(2);
  }
}

async function main(): Promise<void> {
  const choices = choose(SUITES, options.situation);
  const chosen = choices.filter(({ runs }) => runs);
  const leftOut = choices.filter(({ runs }) => !runs);
  for (const { suite, why } of chosen) console.log(`runs      ${suite.name.padEnd(17)}${why}`);
  for (const { suite, why } of leftOut) console.log(`left out  ${suite.name.padEnd(17)}${why}`);
  if (options.list) return;
  const logs = mkdtempSync(join(tmpdir(), "nodeyard-ci-"));
  try {
    const { ended, late } = await runAll(chosen, logs);
    conclude(ended, [...leftOut, ...late]);
  } finally {
    rmSync(logs, { recursive: true, force: true });
  }
}

async function runAll(chosen: readonly Choice[], logs: string) {
  const processors = availableParallelism();
  const { commits, changedSince } = options.situation;
  const changed = changedSince("mutants");
  const env = {
    ...environmentOf(join(logs, "installed"), options.all ? "all" : "some"),
    SINCE: typeof changed === "string" ? "HEAD" : changed.since,
  };
  const left = chosen.map(({ suite }) => suite);
  const running = new Map<Suite, Promise<Ended>>();
  const ended: Ended[] = [];
  const late: Choice[] = [];
  const withoutNeed: string[] = [];
  /** Begins neither it nor what needs it. */
  const takeOut = (suite: Suite) => {
    const out = withDependents(suite, left);
    for (const one of out) if (left.includes(one)) left.splice(left.indexOf(one), 1);
    return out;
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      left.length = 0;
      endAll(signal);
    });
  }
  while (left.length > 0 || running.size > 0) {
    const next = nextSuite(left, [...running.keys()], { processors, commits });
    if (next !== undefined && !options.all && isTooLate(next, secondsSoFar(), left)) {
      const why = `would end too late: ${minutes(secondsSoFar())} of ${MOST_MINUTES} are over`;
      late.push(...takeOut(next).map((suite) => ({ suite, runs: false, why })));
      continue;
    }
    if (next !== undefined) {
      left.splice(left.indexOf(next), 1);
      console.log(`=== ${next.name}: about ${minutes(next.takes.seconds)}, ${left.length} more after it`);
      const own = patient(next.takes.limit * 60_000);
      const limitMs = options.all ? own : limitOf(own, secondsSoFar());
      running.set(next, runSuite(next, { logs, env, limitMs }));
      continue;
    }
    const one = await Promise.race(running.values());
    running.delete(one.suite);
    ended.push(one);
    console.log(lineOf(one));
    if (one.passed) continue;
    for (const suite of takeOut(one.suite).slice(1))
      withoutNeed.push(`${suite.name} (${one.suite.name} failed)`);
  }
  if (withoutNeed.length > 0) console.log(`not run: ${withoutNeed.join(", ")}`);
  return { ended, late };
}

/** Since the process began. */
function secondsSoFar(): number {
  return Math.round(performance.now() / 1_000);
}

function lineOf({ suite, passed, seconds, processorSeconds, timedOut }: Ended): string {
  const how = passed ? "passed" : timedOut ? `FAILED: did not end in time,` : "FAILED";
  return `--- ${suite.name}: ${how} in ${seconds} s (${Math.round(processorSeconds)} s of a processor)`;
}

function minutes(seconds: number): string {
  return seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}

/** What failed again at the end, where it is found without a search; the last line counts. */
function conclude(ended: readonly Ended[], leftOut: readonly Choice[]): void {
  const failed = ended.filter(({ passed }) => !passed);
  for (const { suite, log } of failed)
    console.log(`=== ${suite.name} FAILED:\n${failureOf(readFileSync(log, "utf8"))}`);
  const unsure = ended.flatMap(({ log }) => secondTries(readFileSync(log, "utf8")));
  if (unsure.length > 0) console.log(`Passed only at the second try, to be fixed:\n${unsure.join("\n")}`);
  for (const { suite, why } of leftOut) console.log(`left out  ${suite.name.padEnd(17)}${why}`);
  for (const one of ended) console.log(lineOf(one));
  // Once more, because what is kept of a long output is often its end.
  for (const { log } of failed)
    for (const name of failedTests(readFileSync(log, "utf8"))) console.log(`failed: ${name}`);
  const passed = ended.filter((one) => one.passed).map(({ suite }) => suite.name);
  if (recordPasses(root, passed))
    console.log("Commit .ci/last-whole, which now says that this commit passed these suites.");
  const counts = [
    `${passed.length} passed`,
    `${failed.length} failed`,
    `${leftOut.length} left out`,
    `${counted(unsure.length, "test")} passed at the second try`,
  ];
  console.log(`${counts.join(", ")}, in ${minutes(secondsSoFar())}`);
  process.exitCode = failed.length === 0 && ended.length + leftOut.length === SUITES.length ? 0 : 1;
}
