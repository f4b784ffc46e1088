import { relative } from "node:path";
import { BaseSequencer, startVitest, type TestSpecification } from "vitest/node";
import { mutantOf } from "./list.ts";
import { mutantPlugin } from "./load.ts";

/** Result of a run of test files, as one line of JSON on standard output. */
export interface TestsOutcome {
  /** The tests that failed with their files, or the files that did not load. */
  readonly failed: readonly { readonly file: string; readonly name: string }[];
  /** Whether a test loaded the mutant's file. */
  readonly loaded: boolean;
  readonly ran: number;
}

// A process of its own: arguments are the mutant's name ("" for none) and the test files, without their ending.
const [name = "", ...files] = process.argv.slice(2);
const fault = name === "" ? undefined : mutantPlugin(mutantOf(name));
const place = ({ moduleId }: TestSpecification) =>
  files.findIndex((file) => moduleId.endsWith(`/${file}.test.ts`));
/** As they are given: the first that fails ends the run. */
class AsGiven extends BaseSequencer {
  override async sort(found: TestSpecification[]): Promise<TestSpecification[]> {
    return found.sort((one, other) => place(one) - place(other));
  }
}
const vitest = await startVitest(
  "test",
  files.map((file) => (file.endsWith("/") ? file : `${file}.test.ts`)),
  {
    run: true,
    watch: false,
    bail: 1,
    // A fault that shows in one of two tries is caught.
    retry: 0,
    maxWorkers: 1,
    sequence: { sequencer: AsGiven },
    reporters: [{}],
    coverage: { enabled: false },
    // A cached module of one mutant would be used for another, or for the product.
    fsModuleCache: false,
  },
  { plugins: fault === undefined ? [] : [fault.plugin] },
);
const modules = vitest.state.getTestModules();
const tests = modules.flatMap((module) => [...module.children.allTests()]);
const outcome: TestsOutcome = {
  failed: [
    ...modules
      .filter((module) => module.errors().length > 0)
      .map((module) => told(module.moduleId, module.moduleId)),
    ...tests
      .filter((test) => test.result().state === "failed")
      .map((test) => told(test.module.moduleId, test.fullName)),
  ],
  loaded: fault?.wasLoaded() ?? false,
  ran: tests.length,
};

function told(path: string, name: string): { readonly file: string; readonly name: string } {
  return { file: relative(process.cwd(), path).replace(/\.test\.ts$/, ""), name };
}
await vitest.close();
process.stdout.write(`\n${JSON.stringify(outcome)}\n`);
process.exit(0);
