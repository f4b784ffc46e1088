/**
 * The suites of real slivers in a virtual machine that has cgroup v2 only: `node testing/slivers/guest/main.ts [SUITE ...]`, or
 * `npm run test:slivers:guest`. Exit code 0: everything ran and passed; 1: something did not; 2: it was called wrongly.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { Archives } from "@nodeyard/sliver";
import { runGuest } from "./machine.ts";
import { problemOf, readResults } from "./results.ts";
import { guestRoot } from "./root.ts";
import { workDisk } from "./work.ts";

const LIMIT_MINUTES = Number(process.env.NODEYARD_GUEST_MINUTES ?? 60);
const MEBIBYTES = 3072;
/** Of the random suite, as everywhere: what is left out is said by the name of the test. */
const STEPS = process.env.NODEYARD_SLIVER_STEPS ?? "100";

const suites = process.argv.slice(2);
if (suites.some((one) => !/^lxc-[a-z]+$/.test(one))) {
  process.stderr.write("usage: main.ts [lxc-SUITE ...]   as in packages/sliver/test/isolation\n");
  process.exit(2);
}
const say = (line: string) => void process.stdout.write(`${line}\n`);
const began = systemClock.monotonic();
const seconds = () => Math.round((systemClock.monotonic() - began) / 1000);

// Whoever is told to stop takes the guest and its disks along.
const stop = new AbortController();
const { signal } = stop;
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
const archives = new Archives({ cache: join(tmpdir(), "nodeyard-image-cache"), onProgress: say });
const image = await archives.ensure({ debian: "bookworm", packages: [] }, signal);
const root = await guestRoot(say);
const folder = await mkdtemp(join(tmpdir(), "nodeyard-guest-"));
try {
  const settings = { SUITES: suites.join(" "), NODEYARD_SLIVER_STEPS: STEPS };
  const work = await workDisk(folder, { images: [image], settings });
  const results = join(folder, "results");
  await writeFile(results, "");
  say(`${seconds()} s: booting`);
  const machine = {
    ...root,
    root: root.disk,
    work,
    results,
    cores: availableParallelism(),
    mebibytes: MEBIBYTES,
  };
  const run = await runGuest(machine, LIMIT_MINUTES * 60_000, (line) => say(`  ${line}`), signal);
  const found = readResults(run.results);
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
      `${run.accelerator}, controllers ${facts.controllers}; ${facts.seconds} s in the guest, ${seconds()} s in all`,
  );
  process.exitCode = problem === undefined ? 0 : 1;
} catch (error) {
  say(`FAILED: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
