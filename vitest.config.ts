import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";

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
    // A net for what hangs, far beyond what a busy machine needs: no test asserts on time.
    testTimeout: 90_000,
    hookTimeout: 180_000,
    coverage: { provider: "v8", include: ["packages/*/src/**"], exclude: ["packages/*/src/bin/**"] },
  },
});
