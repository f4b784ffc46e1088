import type { Step } from "@nodeyard/client/steps";
import fc from "fast-check";
import { expect, test } from "vitest";
import { waterfall } from "../src/waterfall.ts";

const time = (ms: number) => new Date(ms).toISOString();
const step = (began: number, fields: Partial<Step>): Step => ({
  node: "0000000001",
  of: "launch",
  attempt: 1,
  step: "create",
  began: time(began),
  seconds: 1,
  error: null,
  ...fields,
});

const life: readonly Step[] = [
  step(0, { seconds: 2, error: "no room" }),
  step(2_000, { of: "clean-up", step: "remove", seconds: 0.5 }),
  step(2_500, { attempt: 2 }),
  step(3_500, { attempt: 2, step: "boot", seconds: 6.5 }),
  step(10_000, { of: "life", step: "there to be used", seconds: 36_000 }),
  step(36_010_000, { of: "delete", step: "remove", seconds: null }),
];

test("a life is a waterfall: failures are marked with their error, a running step is open, idle hours take no room", () => {
  expect(waterfall(life, 36_015_000, 80)).toEqual([
    "  launch: create    [======x                                          ]    2.0 s",
    "      failed: no room",
    "  clean-up: remove  [      ==                                         ]   500 ms",
    "  launch 2: create  [        ===                                      ]    1.0 s",
    "  launch 2: boot    [           ======================                ]    6.5 s",
    "  there to be used  [                                                 ]     10 h",
    "  delete: remove    [                                ================>] 5.0 s...",
  ]);
});

test("no line is longer than the terminal, however odd the steps are", () => {
  const steps = fc.array(
    fc.record({
      node: fc.constantFrom("0000000001", "0000000002"),
      of: fc.constantFrom("launch", "life", "delete", "clean-up"),
      attempt: fc.nat({ max: 99 }),
      step: fc.string({ maxLength: 60, unit: "grapheme-ascii" }),
      began: fc.integer({ min: 0, max: 1e12 }).map(time),
      seconds: fc.option(fc.integer({ min: 0, max: 1e7 })),
      error: fc.option(fc.constant("word ".repeat(40))),
    }),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(steps, fc.integer({ min: 70, max: 250 }), (given, columns) => {
      for (const line of waterfall(given, 1e12, columns)) expect(line.length).toBeLessThanOrEqual(columns);
    }),
  );
});
