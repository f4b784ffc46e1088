import { defineConfig } from "vitest/config";

/** The suites that need the control plane; `npm test` leaves them alone, `npm run test:openstack` skips none. */
export default defineConfig({
  test: {
    include: ["packages/driver-openstack/test/real/*.ts", "testing/openstack/real/*.ts"],
    pool: "forks",
    // One cloud, one after the other.
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 900_000,
  },
});
