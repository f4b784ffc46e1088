import { expect, test } from "vitest";
import { failedTests, failureOf, secondTries } from "../told.ts";

const PASSED_LATE = `
 Test Files  1 passed (1)
Passed only at the second try, to be fixed (2):
  packages/a/test/b.test.ts > one > does it
    Error: expected 1 > 2
    at packages/a/test/b.test.ts:1:1
  testing/c.test.ts > other
    Error: late
Not run, because they take long`;

test("tests that passed at the second try, and what they failed by", () => {
  expect(secondTries(PASSED_LATE)).toEqual([
    "  packages/a/test/b.test.ts > one > does it\n    Error: expected 1 > 2\n    at packages/a/test/b.test.ts:1:1",
    "  testing/c.test.ts > other\n    Error: late",
  ]);
  expect(secondTries("all well")).toEqual([]);
});

test("a failure is the runner's own summary, or the last lines", () => {
  const lines = Array.from({ length: 100 }, (_, at) => `line ${at}`);
  expect(failureOf(lines.join("\n")).split("\n")).toEqual(lines.slice(60));
  const summary = ["⎯⎯ Failed Tests 1 ⎯⎯", "a > b", "Error: no"];
  expect(failureOf([...lines, ...summary, "end"].join("\n")).split("\n")).toEqual([...summary, "end"]);
});

test("the names of what failed, each once, without colours", () => {
  const bold = "\u001b[1m";
  const lines = [
    `${bold} FAIL \u001b[22m a.test.ts > one does (initial run)`,
    " FAIL  a.test.ts > one does (1st retry)",
    " FAIL  b.test.ts > two FAIL (twice)",
    "no FAIL  at the start",
  ];
  expect(failedTests(lines.join("\n"))).toEqual(["a.test.ts > one does", "b.test.ts > two FAIL (twice)"]);
});
