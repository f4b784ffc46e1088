import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { patient } from "./testing/patience.ts";
import { everySuite } from "./tools/suites/every-suite.ts";
import { QUICK, SLOW } from "./tools/suites/suites.ts";

/** Minutes each, most of it spent waiting: last, one of them would run alone at the end. */
const LONG = /\/test\/images\/killed|\/testing\/(chaos|qemu)\//;

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => LONG.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

const ALL = [
  "packages/*/*/test/**/*.test.ts",
  "tools/**/*.test.ts",
  "testing/**/*.test.ts",
  "bench/**/*.test.ts",
  "examples/**/*.test.ts",
  "packaging/**/*.test.ts",
  "simulation/**/*.test.ts",
];
/** Real slivers: npm run test:slivers. */
const NOT_HERE = [...configDefaults.exclude, "packages/*/*/test/**/lxc-*.test.ts"];

const NOT_QUICK = [...NOT_HERE, ...SLOW.flatMap(({ include }) => include)];

function suite(name: string, include: readonly string[], exclude: readonly string[], more: object) {
  return { extends: true as const, test: { name, include: [...include], exclude: [...exclude], ...more } };
}

export default defineConfig({
  test: {
    ...everySuite,
    projects: [
      // Files share processes, as in Suite.
      suite(QUICK, ALL, NOT_QUICK, { isolate: false }),
      ...SLOW.map(({ name, include, sharesProcesses }, index) => {
        const before = SLOW.slice(0, index).flatMap((one) => one.include);
        const more = { testTimeout: patient(600_000), isolate: !sharesProcesses };
        return suite(name, include, [...NOT_HERE, ...before], more);
      }),
    ],
    pool: "forks",
    // One more than cores: many files wait for real servers, not for the processor. In CI other suites run beside these.
    maxWorkers: availableParallelism() + (process.env.CI === undefined ? 1 : 0),
    sequence: { sequencer: LongFirst },
    coverage: { provider: "v8", include: ["packages/*/*/src/**"], exclude: ["packages/*/*/src/bin/**"] },
  },
});
