import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { requireTmt } from "../../connect/tmt.ts";
import { GITEA } from "../../gitea/server.ts";
import { requireTools } from "../../skipped.ts";
import { requireZuul } from "../../zuul/require.ts";
import { day } from "../day.ts";
import { ledgerFaults } from "../verdict.ts";

const skipped =
  requireZuul() ?? requireTmt() ?? requireTools("a mixed day (testing/gitea/build.sh)", join(GITEA, "gitea"));

describe.skipIf(skipped)("a day of Zuul, Gitea, GitHub, tmt and scripts on one pool", () => {
  test("each job runs once while launchers and connectors are killed; nothing is left, no limit is exceeded", async () => {
    const notes: string[] = [];
    const { faults, kills, logs } = await day({ jobs: 60, seed: 1, note: (what) => void notes.push(what) });
    expect(faults, [...faults, ...notes, ...logs.map((log) => log.slice(-3_000))].join("\n")).toEqual([]);
    expect(Math.min(...Object.values(kills))).toBeGreaterThan(0);
  });
});

test("a job that never ran, ran twice, or met another on its node is found", () => {
  const mark = (job: string, what: "begin" | "end", address: string) => ({ job, what, address, at: 0 });
  const whole = (job: string, address: string) => [mark(job, "begin", address), mark(job, "end", address)];
  expect(ledgerFaults(["a", "b"], [...whole("a", "1"), ...whole("b", "1")])).toEqual([]);
  expect(ledgerFaults(["a", "b"], [...whole("a", "1"), ...whole("a", "2")])).toHaveLength(2);
  const [begin, end] = whole("a", "1");
  expect(ledgerFaults(["a", "b"], [begin!, ...whole("b", "1"), end!])).toEqual(["a and b were on 1 at once"]);
});
