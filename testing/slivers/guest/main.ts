/**
 * The suites of real slivers on a machine that has cgroup v2 only, which is this kernel as a program:
 * `node testing/slivers/guest/main.ts [SUITE ...]`, or `npm run test:slivers:guest`. Exit code 0: everything ran and passed; 1: something did
 * not; 2: wrong options.
 */
import { copyFile, link, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { availableParallelism, homedir, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "@nodeyard/runtime";
import { Archives } from "@nodeyard/sliver";
import { commandLine, jobDisk, shellText } from "./machine.ts";
import { problemOf, readResults } from "./results.ts";
import { guestRoot } from "./root.ts";
import { stream } from "./stream.ts";

const REPOSITORY = join(import.meta.dirname, "../../..");
const LIMIT_MINUTES = Number(process.env.NODEYARD_GUEST_MINUTES ?? 90);
const MEBIBYTES = 3072;
/** As many as kernel.config allows. */
const MOST_CORES = 8;
/** Steps of the random suite, as everywhere; the name of a test says what it leaves out. */
const STEPS = process.env.NODEYARD_SLIVER_STEPS ?? "100";
const SUITE = /^(?:[a-z-]+\/)*lxc-[a-z0-9-]+$/;
/** Not a suite but a script, which needs a machine of its own: it is run alone. */
const JOB = "first-job";

function fail(why: string): never {
  process.stderr.write(`${why}
usage: main.ts [${JOB} | lxc-SUITE ...]
  lxc-SUITE   as in packages/*/*/test, with any part of its path; default: all
  ${JOB}   npm run e2e:first-job
`);
  process.exit(2);
}

function suites(): string[] {
  try {
    return parseArgs({ allowPositionals: true, options: {} }).positionals;
  } catch (error) {
    return fail((error as Error).message);
  }
}

const named = suites();
const job = named.length === 1 && named[0] === JOB;
const wrong = job ? undefined : named.find((one) => !SUITE.test(one));
if (wrong !== undefined) fail(`${wrong} is no suite`);
if (process.getuid?.() !== 0) fail("the guest needs root: its kernel runs in a namespace of processes");

const say = (line: string) => void process.stdout.write(`${line}\n`);
const began = systemClock.monotonic();
const seconds = () => Math.round((systemClock.monotonic() - began) / 1000);

async function builtKernel(): Promise<string> {
  const folder = process.env.NODEYARD_GUEST ?? join(homedir(), ".cache/nodeyard/guest");
  let last = "";
  await stream(join(import.meta.dirname, "kernel.sh"), [folder], (line) => {
    last = line;
    if (!line.startsWith(folder)) say(line);
  });
  return last;
}

/** Prints the results of a run; true when all is as expected. */
function reported(text: string): boolean {
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
    `${problem === undefined ? "passed" : `FAILED (${problem})`}: ${report.numPassedTests} of ${report.numTotalTests} tests on Linux ` +
      `${facts.kernel} with controllers ${facts.controllers}; ${seconds()} s in all`,
  );
  return problem === undefined;
}

// When it is stopped, it ends the guest and removes its disks.
const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.on(name, () => stop.abort(new Error(`stopped by ${name}`)));
const folder = await mkdtemp(join(tmpdir(), "nodeyard-guest-"));
try {
  const archives = new Archives({ cache: join(tmpdir(), "nodeyard-image-cache"), onProgress: say });
  const image = await archives.ensure({ debian: "bookworm", packages: [] }, stop.signal);
  await mkdir(join(folder, "images"));
  await link(image, join(folder, "images", basename(image)));
  await copyFile(join(import.meta.dirname, "boot.sh"), join(folder, "boot.sh"));
  const settings = { SUITES: named.join(" "), NODEYARD_SLIVER_STEPS: STEPS, REPOSITORY };
  await writeFile(join(folder, "settings"), shellText(settings));
  const [program = "", ...words] = commandLine({
    kernel: await builtKernel(),
    root: await guestRoot(say),
    ...(job ? { job: await jobDisk(folder, say) } : {}),
    folder,
    cores: Math.min(availableParallelism(), MOST_CORES),
    mebibytes: MEBIBYTES,
  });
  say(`${seconds()} s: booting`);
  const limit = setTimeout(
    () => stop.abort(new Error(`the guest did not end within ${LIMIT_MINUTES} minutes`)),
    LIMIT_MINUTES * 60_000,
  );
  await stream(program, words, (line) => say(`  ${line.trimEnd()}`), stop.signal).finally(() =>
    clearTimeout(limit),
  );
  process.exitCode = reported(await readFile(join(folder, "results"), "utf8").catch(() => "")) ? 0 : 1;
} catch (error) {
  const { message } = (stop.signal.aborted ? stop.signal.reason : error) as Error;
  say(`FAILED: ${message}`);
  process.exitCode = 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
