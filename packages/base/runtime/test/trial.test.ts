import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  atLeast,
  type BootTally,
  judgeTrial,
  noBoots,
  seededRandom,
  type Trial,
  type TrialOutcome,
  withBoot,
} from "../src/index.ts";

const rules = { launches: 20, maxAgeMs: 86_400_000 };
const trial = (candidate: BootTally, stable: BootTally): Trial => ({
  since: 0,
  tallies: { candidate, stable },
});

/** Launches until the trial ends; both sides fail at their rate and boot in about their time. */
function tried(
  seed: number,
  candidate: { readonly fails: number; readonly seconds: number },
  stable: { readonly fails: number; readonly seconds: number },
): Exclude<TrialOutcome["verdict"], "wait"> {
  const random = seededRandom(seed);
  const launch = (side: typeof candidate, tally: BootTally) => {
    if (random.float() < side.fails) return withBoot(tally, undefined);
    // Log-normal, roughly: the sum of uniform parts.
    const spread = random.float() + random.float() + random.float() - 1.5;
    return withBoot(tally, side.seconds * 1000 * Math.exp(0.4 * spread));
  };
  let canary = trial(noBoots, noBoots);
  for (;;) {
    let { candidate: ours, stable: theirs } = canary.tallies;
    for (let other = 0; other < 9; other++) theirs = launch(stable, theirs);
    ours = launch(candidate, ours);
    canary = trial(ours, theirs);
    const { verdict } = judgeTrial(canary, rules, 0);
    if (verdict !== "wait") return verdict;
  }
}

function rolledBack(candidate: Parameters<typeof tried>[1], stable: Parameters<typeof tried>[2]): number {
  const runs = 300;
  let count = 0;
  for (let seed = 1; seed <= runs; seed++) if (tried(seed, candidate, stable) === "rolled-back") count++;
  return count / runs;
}

describe("a build on trial", () => {
  test.each([[{ fails: 0, seconds: 30 }], [{ fails: 0.05, seconds: 30 }], [{ fails: 0.3, seconds: 30 }]])(
    "that is as good as the others (%j) is promoted, but for a few in a hundred",
    (both) => {
      // Rates up to the licence of one in five are judged against themselves; above, against that.
      expect(rolledBack(both, both)).toBeLessThan(both.fails > 0.2 ? 0.2 : 0.03);
    },
  );

  test.each([[{ fails: 1, seconds: 30 }], [{ fails: 0.7, seconds: 30 }], [{ fails: 0, seconds: 120 }]])(
    "that is clearly worse (%j) is rolled back, but for a few in a hundred",
    (worse) => {
      expect(rolledBack(worse, { fails: 0.02, seconds: 30 })).toBeGreaterThan(0.97);
    },
  );

  test("that never boots is rolled back after three launches against proven others", () => {
    const stable = { ...noBoots, boots: 100, logs: 340, squares: 1160 };
    const verdicts = [1, 2, 3].map(
      (failed) => judgeTrial(trial({ ...noBoots, failed }, stable), rules, 0).verdict,
    );
    expect(verdicts).toEqual(["wait", "wait", "rolled-back"]);
  });

  test("whose trial is too short for statistics is not promoted by failures", () => {
    const short = { ...rules, launches: 2 };
    const verdict = (boots: number, failed: number) =>
      judgeTrial(trial({ ...noBoots, boots, failed }, { ...noBoots, boots: 1 }), short, 0).verdict;
    expect([verdict(0, 1), verdict(0, 2), verdict(1, 1), verdict(2, 0)]).toEqual([
      "wait",
      "rolled-back",
      "promoted",
      "promoted",
    ]);
    // Where nothing boots, whatever the build, it is not the build.
    const dark = trial({ ...noBoots, failed: 2 }, { ...noBoots, failed: 2 });
    expect(judgeTrial(dark, short, 0).verdict).toBe("promoted");
  });

  test("without launches is promoted after its time; one with a failure by then is not", () => {
    const at = (candidate: BootTally, now: number) =>
      judgeTrial(trial(candidate, noBoots), rules, now).verdict;
    const one = withBoot(noBoots, 1_000);
    expect([at(one, rules.maxAgeMs - 1), at(one, rules.maxAgeMs)]).toEqual(["wait", "promoted"]);
    expect(at(withBoot(one, undefined), rules.maxAgeMs)).toBe("rolled-back");
  });

  test("is judged worse for each more failure, and never without one or a slow boot", () => {
    const tally = fc.record({ boots: fc.nat(200), failed: fc.nat(50) }).map((given) => ({
      ...given,
      logs: given.boots * 3.4,
      squares: given.boots * 3.4 * 3.4,
    }));
    fc.assert(
      fc.property(tally, tally, (candidate, stable) => {
        const { verdict } = judgeTrial(trial(candidate, stable), rules, 0);
        const worse = judgeTrial(trial(withBoot(candidate, undefined), stable), rules, 0).verdict;
        if (verdict === "rolled-back") expect(worse).toBe("rolled-back");
        if (candidate.failed === 0) expect(verdict).not.toBe("rolled-back");
      }),
    );
  });

  test("the binomial tail is what counting every outcome gives", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.nat(12),
        fc.double({ min: 0.01, max: 0.99, noNaN: true }),
        (n, k, p) => {
          let sum = 0;
          for (let outcome = 0; outcome < 2 ** n; outcome++) {
            const ones = outcome.toString(2).replaceAll("0", "").length;
            if (ones >= k) sum += p ** ones * (1 - p) ** (n - ones);
          }
          expect(atLeast(k, n, p)).toBeCloseTo(k > n ? 0 : sum, 9);
        },
      ),
      { numRuns: 50 },
    );
  });
});
