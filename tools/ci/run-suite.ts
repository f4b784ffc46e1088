import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Suite } from "./suite.ts";

export interface Ended {
  readonly suite: Suite;
  readonly passed: boolean;
  /** Seconds that passed, and of a processor: of what the suite started itself, without servers that left its process tree. */
  readonly seconds: number;
  readonly processorSeconds: number;
  /** File with what it printed. */
  readonly log: string;
  readonly timedOut: boolean;
}

/** Numbers of seeds, requests and pods: those that a change has to pass, and those of `--all`. */
const SIZES = {
  some: { NODEYARD_CI_SEEDS: "60", NODEYARD_OPENSTACK_REQUESTS: "60", NODEYARD_KUBERNETES_PODS: "300" },
  all: { NODEYARD_CI_SEEDS: "200" },
};

/** What each suite of a run finds in its environment. `installed`: a folder for the program. */
export function environmentOf(installed: string, sizes: keyof typeof SIZES): NodeJS.ProcessEnv {
  return {
    ...process.env,
    CI: "true",
    ...SIZES[sizes],
    INSTALLED: installed,
    // Tests start the program from there, as npm installs it: faster than from source (docs/design/ci-time.md).
    NODEYARD_PROGRAM: join(installed, "lib/node_modules/nodeyard/src/bin/nodeyard.cjs"),
  };
}

/** `time` of bash counts the processors of all that has been waited for; nothing in Node does. */
const TIMED = 'exec 4>&2; TIMEFORMAT="%U %S"; { time "$@" 2>&4 4>&-; } 2>"$CI_TIMES"';
/** Between the request to end and the end by force. */
const GRACE_MS = 60_000;

const running = new Set<ChildProcess>();

/** Ends what runs, as a whole process group: servers of the suites are in it. */
export function endAll(signal: NodeJS.Signals): void {
  for (const child of running) endGroup(child, signal);
}

function endGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Runs a suite; each line that it prints goes to its log and, behind its name, to standard output. `limitMs`: after that it is ended. */
export async function runSuite(
  suite: Suite,
  options: { readonly logs: string; readonly env: NodeJS.ProcessEnv; readonly limitMs: number },
): Promise<Ended> {
  const log = join(options.logs, suite.name);
  const times = `${log}.times`;
  const words = suite.command.map((word) =>
    word.replaceAll(/\$([A-Z_]+)/g, (_, name) => options.env[name] ?? ""),
  );
  const began = performance.now();
  const child = spawn("bash", ["-c", TIMED, "bash", ...words], {
    env: { ...options.env, CI_TIMES: times },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  running.add(child);
  const file = createWriteStream(log);
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => {
      file.write(`${line}\n`);
      console.log(`${suite.name} | ${line}`);
    });
  }
  let timedOut = false;
  let force: NodeJS.Timeout | undefined;
  const limit = setTimeout(() => {
    timedOut = true;
    endGroup(child, "SIGTERM");
    force = setTimeout(() => endGroup(child, "SIGKILL"), GRACE_MS);
  }, options.limitMs);
  const code = await new Promise<number | null>((resolve) => {
    child.once("error", () => resolve(null));
    child.once("exit", resolve);
  });
  clearTimeout(limit);
  clearTimeout(force);
  running.delete(child);
  // Its last lines may still be in the pipes; what it left running may hold them open for ever.
  await Promise.race([
    Promise.all(
      [child.stdout, child.stderr].map(
        (stream) => stream.closed || new Promise((end) => stream.once("close", end)),
      ),
    ),
    new Promise((resolve) => setTimeout(resolve, 10_000).unref()),
  ]);
  await new Promise<void>((resolve) => file.end(resolve));
  const seconds = Math.round((performance.now() - began) / 1_000);
  return { suite, passed: code === 0, seconds, processorSeconds: processorSecondsOf(times), log, timedOut };
}

/** The last line: what a suite that was ended by force printed there may stand before it. */
function processorSecondsOf(times: string): number {
  try {
    const last = readFileSync(times, "utf8").trim().split("\n").at(-1)!;
    const sum = last.split(" ").reduce((total, part) => total + Number(part), 0);
    return Number.isFinite(sum) ? sum : 0;
  } catch {
    return 0;
  }
}
