import { join } from "node:path";
import { configDefaults, defineConfig } from "vitest/config";
import { everySuite } from "../../tools/suites/every-suite.ts";
import { patient } from "../patience.ts";

const ALL = ["packages/*/*/test/**/lxc-*.test.ts"];
/** They measure how the kernel divides the processors: nothing else may run meanwhile. */
const ALONE = [
  "packages/slivers/manager/test/isolation/lxc-{attacks,hostile-*,loans,neighbours,shares}.test.ts",
  "packages/nodeyard/process/test/slivers/lxc-lending.test.ts",
];

function project(name: string, include: readonly string[], exclude: readonly string[] = []) {
  return {
    extends: true as const,
    test: { name, include: [...include], exclude: [...configDefaults.exclude, ...exclude] },
  };
}

/**
 * The suites that make real slivers; `npm test` does not run them, `npm run test:slivers` runs all of them. `--project=beside` or `alone`:
 * those that may run beside other suites, and those that may not.
 */
export default defineConfig({
  test: {
    ...everySuite,
    projects: [project("beside", ALL, ALONE), project("alone", ALONE)],
    pool: "forks",
    // They share one machine: one file at a time, also across runs.
    fileParallelism: false,
    setupFiles: [join(import.meta.dirname, "one-at-a-time.ts")],
    testTimeout: patient(900_000),
    hookTimeout: patient(1_800_000),
  },
});
