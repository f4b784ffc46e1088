import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { messageOf } from "@nodeyard/runtime";
import { type SeedOutcome, SeedThread } from "../campaign/index.ts";
import { fileOf, type Mutant, testsOf } from "./mutant.ts";
import type { TestsOutcome } from "./run-tests.ts";
import type { Verdict } from "./state.ts";

export interface TryOptions {
  /** Seeds 1 to N, at most. */
  readonly seeds: number;
  /** Seeds that are tried before the tests: as a rule tests cost as much as a few, and more seeds seldom catch what these do not. */
  readonly first?: number;
  /** Time limit of one seed or one test file, milliseconds. */
  readonly limitMs: number;
  readonly revision: string;
  /** What caught it the last time is tried first. */
  readonly before: Verdict | undefined;
  /** Test files that are run together instead of the mutant's own one after the other, in this order, until one fails. */
  readonly together?: TestGroup;
}

/** Paths of tests below the root, without their ending, and how long they take without a fault. */
export interface TestGroup {
  readonly files: readonly string[];
  readonly ms: number;
}

/** Seeds of one mutant that do not end, at most: the others would not end either. */
const ENDLESS = 2;

/** A seed or test fails without any mutant, so it proves nothing about mutants. */
export class BaselineFailed extends Error {
  readonly code = "mutants.baseline_failed";
}

/** The unchanged product on a seed or test that caught a mutant: each is run once. */
export class Baseline {
  readonly #limitMs: number;
  readonly #seeds = new Map<number, Promise<void>>();
  readonly #tests = new Map<string, Promise<void>>();

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Throws BaselineFailed if the seed also fails without a mutant. */
  seed(seed: number): Promise<void> {
    return once(this.#seeds, seed, async () => {
      const thread = new SeedThread();
      const { failure } = await thread.run(seed).finally(() => thread.close());
      if (failure !== undefined)
        throw new BaselineFailed(`seed ${seed} breaks "${failure.rule}" without a mutant`);
    });
  }

  test(file: string): Promise<void> {
    return once(this.#tests, file, async () => {
      const outcome = await runTests("", [file], this.#limitMs);
      if (outcome === undefined || outcome.failed.length > 0 || outcome.ran === 0)
        throw new BaselineFailed(`${file} fails without a mutant: ${outcome?.failed[0]?.name ?? "no end"}`);
    });
  }
}

function once<K>(asked: Map<K, Promise<void>>, key: K, ask: () => Promise<void>): Promise<void> {
  const answer = asked.get(key) ?? ask();
  asked.set(key, answer);
  return answer;
}

/** Tries what may catch a mutant until something does: what caught it before, then a few seeds, its tests, and the other seeds. */
export async function tryMutant(mutant: Mutant, options: TryOptions, baseline: Baseline): Promise<Verdict> {
  const { before, revision, first: head = 8 } = options;
  const sum: { tried: number; endless: number; revision: string; outside?: true } = {
    tried: 0,
    endless: 0,
    revision,
  };
  const first = before?.seed?.number;
  const numbers = Array.from({ length: options.seeds }, (_, index) => index + 1);
  const { together } = options;
  const tests = together === undefined ? testsOf(mutant) : [];
  if (before?.test !== undefined && tests.includes(before.test.file)) {
    const test = await byTests([before.test.file]);
    if (test !== undefined) return { ...sum, tried: before.tried, test };
  }
  const order = first === undefined ? numbers : [first, ...numbers.filter((number) => number !== first)];
  const seed = await bySeeds(order.slice(0, head));
  if (seed !== undefined) return { ...sum, seed };
  const test = together === undefined ? await byTests(tests) : await byGroup(together);
  if (test !== undefined) return { ...sum, test };
  const late = sum.outside ? undefined : await bySeeds(order.slice(head));
  return late === undefined ? sum : { ...sum, seed: late };

  async function bySeeds(seeds: readonly number[]): Promise<Verdict["seed"]> {
    if (seeds.length === 0 || sum.endless >= ENDLESS) return undefined;
    let thread = new SeedThread(mutant.name);
    try {
      for (const number of seeds) {
        const outcome = await within(options.limitMs, thread.run(number).catch(crashed(number)));
        sum.tried++;
        if (outcome === undefined) {
          await thread.close();
          if (++sum.endless >= ENDLESS) return undefined;
          thread = new SeedThread(mutant.name);
          continue;
        }
        // A file that the simulation does not load: no seed can catch it.
        if (outcome.isMutated !== true) {
          sum.outside = true;
          return undefined;
        }
        const { failure } = outcome;
        if (failure === undefined) continue;
        refuseNonsense(mutant, failure.message);
        await baseline.seed(number);
        return { number, rule: ruleOf(failure) };
      }
      return undefined;
    } finally {
      await thread.close();
    }
  }

  async function byGroup({ files, ms }: TestGroup): Promise<Verdict["test"]> {
    if (files.length === 0) return undefined;
    // A busy machine, and a mutant that makes tests wait for what never comes.
    const outcome = await runTests(mutant.name, files, options.limitMs + 4 * ms);
    if (outcome === undefined) sum.endless++;
    const failed = outcome?.failed[0];
    if (failed !== undefined) await baseline.test(failed.file);
    return failed;
  }

  async function byTests(files: readonly string[]): Promise<Verdict["test"]> {
    let idle: string | undefined;
    for (const file of files) {
      const outcome = await runTests(mutant.name, [file], options.limitMs);
      if (outcome === undefined) {
        sum.endless++;
        continue;
      }
      if (!outcome.loaded) idle = file;
      const [failed] = outcome.failed;
      if (failed === undefined) continue;
      await baseline.test(failed.file);
      return failed;
    }
    if (idle === undefined) return undefined;
    throw new BaselineFailed(
      `mutant ${mutant.name}: ${idle} never loads ${fileOf(mutant)}; name another test`,
    );
  }
}

/** A mutant whose error nobody catches ends the thread, as it would end the process. */
function crashed(seed: number): (error: unknown) => SeedOutcome {
  return (error) => ({
    seed,
    isMutated: true,
    failure: { seed, rule: "unexpected", message: messageOf(error) },
  });
}

/** The rule of a check, or the first line of an error that does not come from a check. */
function ruleOf({ rule, message }: NonNullable<SeedOutcome["failure"]>): string {
  return rule === "unexpected" ? `unexpected: ${message.split("\n", 1)[0]!.slice(0, 120)}` : rule;
}

/** A mutant that does not compile proves nothing. */
function refuseNonsense({ name }: Mutant, message: string): void {
  if (/\b(ReferenceError|SyntaxError)\b/.test(message))
    throw new BaselineFailed(`mutant ${name} does not load: ${message.split("\n", 1)[0]}`);
}

/** Undefined if it took too long. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, ms, undefined);
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}

/** In a process of their own; undefined if they did not end. */
function runTests(
  mutant: string,
  files: readonly string[],
  limitMs: number,
): Promise<TestsOutcome | undefined> {
  return lineOf("./run-tests.ts", [mutant, ...files], limitMs) as Promise<TestsOutcome | undefined>;
}

/** The last line, of JSON, that a program of this folder writes; undefined if it did not end in time. */
export function lineOf(script: string, args: readonly string[], limitMs: number): Promise<unknown> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const options = { timeout: limitMs, killSignal: "SIGKILL", maxBuffer: 64 * 1024 * 1024 } as const;
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [path, ...args], options, (error, stdout) => {
      if (error !== null && "killed" in error && error.killed === true) return resolve(undefined);
      const line = stdout.trimEnd().split("\n").at(-1) ?? "";
      if (error === null && /^[{[]/.test(line)) return resolve(JSON.parse(line));
      reject(new BaselineFailed(`${args.at(-1)} could not be run: ${error?.message ?? line}`));
    });
  });
}
