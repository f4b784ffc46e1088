import fc from "fast-check";
import { expect, test } from "vitest";
import { waterfall } from "../../src/cli/waterfall.ts";
import type { LifeStep } from "../../src/operations/index.ts";

const step = (fields: Partial<LifeStep>): LifeStep => ({
  node: "0000000001",
  of: "launch",
  attempt: 1,
  step: "create",
  began: 0,
  ms: 1_000,
  error: null,
  ...fields,
});

const life: readonly LifeStep[] = [
  step({ ms: 2_000, error: "no room" }),
  step({ of: "clean-up", step: "remove", began: 2_000, ms: 500 }),
  step({ attempt: 2, began: 2_500 }),
  step({ attempt: 2, step: "boot", began: 3_500, ms: 6_500 }),
  step({ of: "life", step: "there to be used", began: 10_000, ms: 36_000_000 }),
  step({ of: "delete", step: "remove", began: 36_010_000, ms: null }),
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
      began: fc.integer({ min: 0, max: 1e12 }),
      ms: fc.option(fc.integer({ min: 0, max: 1e10 })),
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
