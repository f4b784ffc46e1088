import { z } from "zod";

const factsSchema = z.object({
  kernel: z.string(),
  controllers: z.string(),
  version1: z.number(),
});

const reportSchema = z.object({
  numTotalTests: z.number(),
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().optional(),
      assertionResults: z.array(
        z.object({
          fullName: z.string(),
          status: z.string(),
          duration: z.number().nullish(),
          failureMessages: z.array(z.string()).nullish(),
        }),
      ),
    }),
  ),
});

export interface GuestResults {
  /** Of vitest. */
  readonly exitCode: number;
  readonly facts: z.output<typeof factsSchema>;
  readonly report: z.output<typeof reportSchema>;
}

/** The guest's results: exit code, facts, vitest's JSON. Throws when one is missing. */
export function readResults(text: string): GuestResults {
  const [code = "", facts = "", ...rest] = text.split("\n");
  if (!/^\d+$/.test(code))
    throw new Error("the guest ended before it handed over its results; see its console");
  return {
    exitCode: Number(code),
    facts: factsSchema.parse(JSON.parse(facts)),
    report: reportSchema.parse(JSON.parse(rest.join("\n"))),
  };
}

/**
 * Why a run proves nothing although vitest may have succeeded; undefined: it does prove it. A skipped suite, or a guest without the
 * expected properties, must not count as success.
 */
export function problemOf({ exitCode, facts, report }: GuestResults): string | undefined {
  if (facts.version1 > 0) return "the guest has hierarchies of cgroup v1";
  const lacking = ["cpu", "cpuset", "io", "memory", "pids"].filter(
    (one) => !facts.controllers.split(" ").includes(one),
  );
  if (lacking.length > 0) return `the guest has no controller ${lacking.join(", ")}`;
  if (report.numTotalTests === 0) return "no test ran";
  if (report.numPendingTests > 0) return `${report.numPendingTests} tests were left out`;
  if (report.numFailedTests > 0) return `${report.numFailedTests} tests failed`;
  if (exitCode !== 0) return `vitest ended with ${exitCode}`;
  return undefined;
}
