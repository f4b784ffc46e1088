import { defineConfig } from "vitest/config";
import { secondTry } from "../../tools/suites/second-try.ts";

/** The suites that need a control plane, each with one of its own; `npm test` does not run them, `npm run test:kubernetes` skips none. */
export default defineConfig({
  test: {
    ...secondTry,
    include: ["packages/driver-kubernetes/test/real/*.ts", "testing/kubernetes/real/*.ts"],
    pool: "forks",
    testTimeout: 600_000,
    hookTimeout: 300_000,
    maxWorkers: 2,
  },
});
