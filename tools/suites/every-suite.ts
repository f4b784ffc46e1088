import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Reporter, TestModule } from "vitest/node";
import { patient } from "../../testing/patience.ts";
import { NOTES, skippedText } from "../../testing/skipped.ts";

if (process.env[NOTES] === undefined) {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-tests-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  process.env[NOTES] = join(folder, "skipped");
  writeFileSync(process.env[NOTES], "");
}

/**
 * What every suite has. In CI a test that fails is tried once more: hundreds of files start real servers on two cores, and one
 * late answer in thousands of tests would refuse a sound commit. What passes only then is a defect of the test or of the product: the last
 * lines name it. They also say what was skipped, and how to run it.
 */
export const everySuite = {
  retry: process.env.CI ? 1 : 0,
  // Nets for what hangs, far beyond what a busy machine needs: no test asserts on time. A test has no limit of its own.
  testTimeout: patient(300_000),
  hookTimeout: patient(300_000),
  // For what is polled for: a busy machine may take Vitest's one second for a single look. On an idle one less than the minute after
  // which everything is looked at again, which must not hide an event that was missed.
  expect: { poll: { timeout: patient(45_000) } },
  reporters: ["default", { onTestRunEnd } satisfies Reporter] as ["default", Reporter],
};

function onTestRunEnd(modules: readonly TestModule[]): void {
  process.stdout.write(skippedText(readFileSync(process.env[NOTES]!, "utf8")));
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
