import { defineConfig } from "vitest/config";
import { everySuite } from "../../tools/suites/every-suite.ts";
import { patient } from "../patience.ts";

/** The suites that need a control plane, each with one of its own; `npm test` does not run them, `npm run test:kubernetes` skips none. */
export default defineConfig({
  test: {
    ...everySuite,
    include: ["packages/drivers/kubernetes/test/real/*.ts", "testing/kubernetes/real/*.ts"],
    pool: "forks",
    testTimeout: patient(600_000),
    hookTimeout: patient(300_000),
    maxWorkers: 2,
  },
});
