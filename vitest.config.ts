import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Minutes each, most of it spent waiting: last, one of them would run alone at the end. */
const LONG = /\/test\/images\/killed|\/testing\/(chaos|qemu)\//;

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => LONG.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    include: [
      "packages/*/test/**/*.test.ts",
      "tools/**/*.test.ts",
      "testing/**/*.test.ts",
      "bench/**/*.test.ts",
      "examples/**/*.test.ts",
      "simulation/**/*.test.ts",
    ],
    // Real slivers: npm run test:slivers.
    exclude: [...configDefaults.exclude, "packages/*/test/**/lxc-*.test.ts"],
    pool: "forks",
    // Vitest leaves one core free: on two, that halves the speed. Many files wait for real servers, not for the processor.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    sequence: { sequencer: LongFirst },
    // A net for what hangs, far beyond what a busy machine needs: no test asserts on time.
    testTimeout: 90_000,
    hookTimeout: 180_000,
    // For what is polled for: a busy machine may take Vitest's one second for a single look. Less than the minute after which
    // everything is looked at again, which must not hide an event that was missed.
    expect: { poll: { timeout: 45_000 } },
    coverage: { provider: "v8", include: ["packages/*/src/**"], exclude: ["packages/*/src/bin/**"] },
  },
});
