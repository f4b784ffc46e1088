import type { Canary } from "@nodeyard/model";
import { imageStatusFields, present, rowOf, trialColumns } from "@nodeyard/operations/listing";
import { noBoots } from "@nodeyard/runtime";
import { expect, test } from "vitest";

const canary: Canary = {
  candidate: "0123456789abcdef0123456789abcdef",
  since: 0,
  share: 0.1,
  tallies: { candidate: { ...noBoots, boots: 3, failed: 1 }, stable: noBoots },
  rejected: [],
  last: {
    build: "fedcba9876543210fedcba9876543210",
    verdict: "rolled-back",
    why: "4 of 5 launches failed",
    at: 0,
  },
};
const trial = (change: Partial<Canary> | null) =>
  present(
    rowOf(imageStatusFields, {
      image: "small",
      paused: false,
      request: null,
      canary: change && { ...canary, ...change },
    }),
    trialColumns,
    { now: 0, ages: "text" },
  ).trial;

test("what people see of a trial: how it goes, else how the last one ended and why", () => {
  expect(trial({})).toBe("01234567 gets 10 %: 3 booted, 1 failed");
  expect(trial({ candidate: null })).toBe("fedcba98 rolled-back: 4 of 5 launches failed");
  expect(trial({ candidate: null, last: null })).toBeNull();
  expect(trial(null)).toBeNull();
});
