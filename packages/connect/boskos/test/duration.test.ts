import { expect, test } from "vitest";
import { milliseconds } from "../src/duration.ts";

test.each([
  ["0", 0],
  ["0s", 0],
  ["1h30m0s", 5_400_000],
  ["1.5h", 5_400_000],
  [".5s", 500],
  ["-2m", -120_000],
  ["+3ms", 3],
  ["1µs", 0.001],
])("%s is %d ms", (text, ms) => {
  expect(milliseconds(text)).toBeCloseTo(ms, 6);
});

test.each(["", "x", "1d", "h", "1h30", "1 h", "1..5s"])("%j is none", (text) => {
  expect(() => milliseconds(text)).toThrow(/^time: (invalid|missing unit)/);
});
