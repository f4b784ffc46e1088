import { describe, expect, test } from "vitest";
import { SeedThread } from "./campaign/index.ts";
import { noCoverage, uncovered } from "./coverage.ts";
import { keptSeeds } from "./kept-seeds.ts";
import { simulate } from "./run.ts";

/** A seed takes about two seconds, and twenty times that on a busy machine; a mutant takes a few seeds. */
const timeout = 300_000;

/** The seeds that `.ci/run` runs beside these tests, the kept ones before others. */
const BESIDE = Number(process.env.NODEYARD_CI_SEEDS ?? 0);

test.for([...keptSeeds].slice(BESIDE))("seed %i: %s", { timeout }, async ([seed]) => {
  const { outcomes } = await simulate({ seed });
  expect(outcomes.used).toBeGreaterThan(0);
});

const others = Array.from({ length: 8 }, (_, index) => 1_001 + index);

test.for(others)("seed %i holds every rule", { timeout }, async (seed) => {
  const { took, launchers, outcomes, ended, coverage } = await simulate({ seed });
  expect(took).toBeGreaterThan(300_000);
  expect(launchers).toBeGreaterThanOrEqual(3);
  expect(outcomes.used).toBeGreaterThan(0);
  expect(ended).toBeGreaterThanOrEqual(50);
  expect(Object.values(coverage.faults).reduce((sum, times) => sum + times)).toBeGreaterThanOrEqual(10);
});

test("one seed is one run: every write is the same", { timeout }, async () => {
  const runs = await Promise.all(
    [1, 2].map(async () => {
      const writes: string[] = [];
      await simulate({
        seed: 77,
        onWrite: ({ zxid, at, client, ops }) =>
          void writes.push(`${zxid} ${at} ${client} ${ops.map((op) => op.path)}`),
      });
      return writes;
    }),
  );
  expect(runs[0]).toEqual(runs[1]);
});

/** Some mutants, each for another part of the checks; for all of them: npm run mutate. */
const MUTANTS: Readonly<Record<string, RegExp>> = {
  "no-version-check": /lock|lease|one request|not written again|only where/,
  "ledgers-are-written-over": /limits|ledger/,
  "tenants-reserve-nothing": /limits|ledger/,
  "slots-without-claims": /a slot has one node/,
};

describe("the mutant", () => {
  test.each(Object.entries(MUTANTS))("%s is caught by a seed", { timeout }, async (mutant, rule) => {
    const thread = new SeedThread(mutant);
    try {
      let caught: string | undefined;
      for (let seed = 1; seed <= 40 && caught === undefined; seed++)
        caught = (await thread.run(seed)).failure?.rule;
      expect(caught).toMatch(rule);
    } finally {
      await thread.close();
    }
  });
});

test("what never happened is named", () => {
  const names = uncovered(noCoverage());
  expect(names).toContain("faults: lost reply");
  expect(names).toContain("transitions: node init -> building");
  expect(names).toContain("crashes: during node.create");
});
