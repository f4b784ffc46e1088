import { join } from "node:path";
import { defineConfig } from "vitest/config";

/** The suites that make real slivers; `npm test` leaves them alone, `npm run test:slivers` runs all of them. */
export default defineConfig({
  test: {
    include: ["packages/*/test/**/lxc-*.test.ts"],
    pool: "forks",
    // One machine, one after the other; also those of another run.
    fileParallelism: false,
    setupFiles: [join(import.meta.dirname, "one-at-a-time.ts")],
    testTimeout: 120_000,
    hookTimeout: 900_000,
  },
});
