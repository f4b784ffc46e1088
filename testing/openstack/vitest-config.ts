import { defineConfig } from "vitest/config";
import { everySuite } from "../../tools/suites/every-suite.ts";
import { patient } from "../patience.ts";

const common = { pool: "forks", testTimeout: patient(600_000), hookTimeout: patient(900_000) } as const;

/** The suites that need the control plane; `npm test` does not run them, `npm run test:openstack` skips none. */
export default defineConfig({
  test: {
    ...everySuite,
    projects: [
      {
        extends: true,
        // Each in projects of its own, all services alive: they do not disturb one another.
        test: {
          ...common,
          name: "together",
          include: [
            "packages/drivers/openstack/test/real/*.ts",
            "testing/openstack/real/{life,reads,zones}.ts",
          ],
          maxWorkers: 4,
          maxConcurrency: 4,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        // It stops services, so it must not run while other suites measure on the same cloud.
        test: {
          ...common,
          name: "alone",
          include: ["testing/openstack/real/{calm,crowd,rate}.ts"],
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
