import { expect, test } from "vitest";
import { addOutcome, newTally, readState, report, seedsLeft, stateOf } from "./index.ts";

test("a failed seed runs again before new ones; if it then passes, it is reported as fixed, and counts once", () => {
  const tally = newTally();
  const failure = { seed: 2, rule: "every request ends", message: "every request ends: 5\n  facts" };
  for (const seed of [1, 3]) addOutcome(tally, { seed }, "old");
  addOutcome(tally, { seed: 2, failure }, "old");
  expect(seedsLeft(tally, [1, 2, 3, 4])).toEqual([2, 4]);
  addOutcome(tally, { seed: 2, failure }, "new");
  expect(seedsLeft(tally, [1, 2, 3, 4])).toEqual([2, 4]);
  const page = () => report({ tally, mutants: {} });
  expect(page()).toContain("## Failures\n\n- seed 2: every request ends\n");

  addOutcome(tally, { seed: 2 }, "new");
  expect(seedsLeft(tally, [1, 2, 3, 4])).toEqual([4]);
  expect(tally).toMatchObject({ done: [1, 3, 2], failures: [], revisions: { old: 3 } });
  expect(tally.fixed).toEqual([{ ...failure, message: "every request ends: 5" }]);
  expect(page()).toContain("## Fixed\n\n- seed 2: every request ends\n");
});

test("a campaign read from its file is the same campaign, whatever the order in which its seeds ended", () => {
  const tally = newTally();
  for (const seed of [3, 1, 2, 7, 10, 9]) addOutcome(tally, { seed }, "one");
  const state = stateOf(tally);
  expect(state.done).toEqual([
    [1, 3],
    [7, 7],
    [9, 10],
  ]);
  const back = readState(JSON.stringify(state));
  expect(back).toEqual({ ...tally, done: [1, 2, 3, 7, 9, 10] });
  expect(seedsLeft(back, [2, 3, 4, 8, 9])).toEqual([4, 8]);
});

test.each([
  ["{", /JSON/],
  ["null", /no "done"/],
  [JSON.stringify({ ...stateOf(newTally()), done: [1, 2] }), /no list of ranges/],
  [JSON.stringify({ ...stateOf(newTally()), coverage: undefined }), /no "coverage"/],
  [JSON.stringify({ ...stateOf(newTally()), fixed: {} }), /no "fixed"/],
])("a file that is no campaign's is refused with the reason: %s", (text, why) => {
  expect(() => readState(text)).toThrow(why);
});
