import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { secondTry } from "../../tools/suites/second-try.ts";

/** The suites that make real slivers; `npm test` does not run them, `npm run test:slivers` runs all of them. */
export default defineConfig({
  test: {
    ...secondTry,
    include: ["packages/*/test/**/lxc-*.test.ts"],
    pool: "forks",
    // They share one machine: one file at a time, also across runs.
    fileParallelism: false,
    setupFiles: [join(import.meta.dirname, "one-at-a-time.ts")],
    testTimeout: 120_000,
    hookTimeout: 900_000,
  },
});
