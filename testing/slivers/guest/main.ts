/**
 * The suites of real slivers in a virtual machine that has cgroup v2 only: `node testing/slivers/guest/main.ts [SUITE ...]`, or
 * `npm run test:slivers:guest`. Exit code 0: everything ran and passed; 1: something did not; 2: wrong options.
 */
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { systemClock } from "@nodeyard/runtime";
import { Archives } from "@nodeyard/sliver";
import { runGuest } from "./machine.ts";
import { Orders } from "./orders.ts";
import { problemOf, readResults } from "./results.ts";
import { guestRoot } from "./root.ts";
import { changes, jobDisk, workDisk } from "./work.ts";

const LIMIT_MINUTES = Number(process.env.NODEYARD_GUEST_MINUTES ?? 60);
const MEBIBYTES = 3072;
/** Steps of the random suite, as everywhere; the name of a test says what it leaves out. */
const STEPS = process.env.NODEYARD_SLIVER_STEPS ?? "100";
/** The minimum for cgroup v2: life, limits and shares of slivers, and attackers. */
const SHORT = ["conformance", "shares", "io", "attacks"].map((name) => `isolation/lxc-${name}`);
const SUITE = /^(?:[a-z-]+\/)*lxc-[a-z0-9-]+$/;
/** Not a suite but a script, which needs a machine of its own: it is run alone. */
const JOB = "first-job";

function fail(why: string): never {
  process.stderr.write(`${why}
usage: main.ts [--short | ${JOB} | lxc-SUITE ...] [--keep]
  lxc-SUITE   as in packages/*/test, with any part of its path; default: all
  ${JOB}   npm run e2e:first-job
  --short     ${SHORT.join(" ")}
  --keep      then run what each line of standard input names, from the working tree as it is by then
`);
  process.exit(2);
}

function options() {
  const known = { short: { type: "boolean" }, keep: { type: "boolean" } } as const;
  try {
    const { values, positionals } = parseArgs({ options: known, allowPositionals: true });
    return { ...values, named: positionals };
  } catch (error) {
    return fail((error as Error).message);
  }
}

const { short = false, keep = false, named } = options();
const job = named.length === 1 && named[0] === JOB;
const wrong = job ? undefined : named.find((one) => !SUITE.test(one));
if (wrong !== undefined) fail(`${wrong} is no suite`);
if (short && named.length > 0) fail("--short names its suites itself");

const say = (line: string) => void process.stdout.write(`${line}\n`);
const began = systemClock.monotonic();
const seconds = () => Math.round((systemClock.monotonic() - began) / 1000);
const settingsOf = (suites: readonly string[]) => ({
  SUITES: suites.join(" "),
  NODEYARD_SLIVER_STEPS: STEPS,
});

/** A pool with the image, if the suites left one on this machine: unpacking the image takes a guest minutes. */
function isPool(name: string): boolean {
  return /^test-pool-[0-9a-f]+\.img$/.test(name);
}

/** Prints the results of a run; true when all is as expected. */
function reported(text: string, accelerator: string): boolean {
  const found = readResults(text);
  const { report, facts } = found;
  for (const file of report.testResults) {
    if (file.message) say(file.message);
    for (const one of file.assertionResults)
      if (one.status !== "passed")
        say(`${one.status}: ${one.fullName}\n${(one.failureMessages ?? []).join("\n")}`);
  }
  const problem = problemOf(found);
  say(
    `${problem === undefined ? "passed" : `FAILED (${problem})`}: ${report.numPassedTests} of ${report.numTotalTests} tests on ${facts.kernel}, ` +
      `${accelerator}, controllers ${facts.controllers}; ${facts.seconds} s in the guest, ${seconds()} s in all`,
  );
  return problem === undefined;
}

// When it is stopped, it ends the guest and removes its disks.
const stop = new AbortController();
const { signal } = stop;
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.on(name, () => stop.abort(new Error(`stopped by ${name}`)));
const folder = await mkdtemp(join(tmpdir(), "nodeyard-guest-"));
try {
  const cache = join(tmpdir(), "nodeyard-image-cache");
  const archives = new Archives({ cache, onProgress: say });
  const image = await archives.ensure({ debian: "bookworm", packages: [] }, signal);
  const root = await guestRoot(say);
  const work = await workDisk(folder, {
    images: [image, ...(await readdir(cache)).filter(isPool).map((name) => join(cache, name))],
    settings: settingsOf(short ? SHORT : named),
  });
  const results = join(folder, "results");
  await writeFile(results, "");
  say(`${seconds()} s: booting`);
  const machine = {
    ...root,
    root: root.disk,
    work,
    ...(job ? { job: await jobDisk(folder, say) } : {}),
    results,
    ...(keep ? { orders: join(folder, "orders") } : {}),
    cores: availableParallelism(),
    mebibytes: MEBIBYTES,
  };
  let read = 0;
  let all = true;
  const one = async (accelerator: string): Promise<void> => {
    const text = (await readFile(results, "utf8")).slice(read);
    read += text.length;
    if (!reported(text, accelerator)) all = false;
  };
  const lines = keep ? createInterface({ input: process.stdin })[Symbol.asyncIterator]() : undefined;
  let orders: Promise<Orders> | undefined;
  const next = async (): Promise<void> => {
    // QEMU writes this port and the console in different threads.
    await pause(1_000);
    await one("kept");
    for (;;) {
      say("which suites?");
      const { value, done } = await lines!.next();
      if (done) return (await orders!).end();
      const suites = (value as string).trim().split(/\s+/);
      if (suites.every((suite) => SUITE.test(suite) || (job && suite === JOB)))
        return (await orders!).run(await changes(folder, settingsOf(suites)));
    }
  };
  const onLine = (line: string) => {
    say(`  ${line}`);
    if (!keep) return;
    if (line.includes("nodeyard guest: up")) orders = Orders.connect(machine.orders!);
    if (line.includes("nodeyard guest: waits")) next().catch((error) => stop.abort(error));
  };
  const run = await runGuest(machine, LIMIT_MINUTES * 60_000, onLine, signal);
  if (!keep) await one(run.accelerator);
  process.exitCode = all ? 0 : 1;
} catch (error) {
  say(`FAILED: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  // Otherwise it would wait for other writers of the pipe.
  process.stdin.destroy();
  await rm(folder, { recursive: true, force: true });
}
