import type { Reporter, TestModule } from "vitest/node";

/**
 * In CI a test that fails is tried once more: hundreds of files start real servers on two cores, and one late answer in thousands of
 * tests would refuse a sound commit. What passes only then is a defect of the test or of the product: the last lines name it.
 */
export const secondTry = process.env.CI
  ? { retry: 1, reporters: ["default", { onTestRunEnd } satisfies Reporter] }
  : {};

function onTestRunEnd(modules: readonly TestModule[]): void {
  const unsure = modules.flatMap((module) =>
    [...module.children.allTests("passed")].filter((test) => test.diagnostic()?.flaky === true),
  );
  if (unsure.length === 0) return;
  console.log(`Passed only at the second try, to be fixed (${unsure.length}):`);
  for (const test of unsure) {
    console.log(`  ${test.module.relativeModuleId} > ${test.fullName}`);
    for (const { stack, message } of test.result().errors ?? []) console.log(`    ${stack ?? message}`);
  }
}
