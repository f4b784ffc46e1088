import fc from "fast-check";
import { expect, test } from "vitest";
import { failedLaunch, isFull, isSpent, newTally, roomAt } from "../../src/launcher/breakers/label-rule.ts";
import { defaultRule } from "../../src/launcher/breakers/rule.ts";

const HOUR = 3_600_000;
const error = { kind: "timeout", error: "no answer" } as const;

test("of a label that never works no more fail than the budget, whatever comes together and when", () => {
  const step = fc.record({ pause: fc.nat(HOUR / 4), begin: fc.nat(40), end: fc.nat(40) });
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.integer({ min: 1, max: 20 }),
      (steps, failedPerHour) => {
        const rule = { ...defaultRule, failedPerHour };
        let [tally, now] = [newTally(false), 1_000_000];
        const begins: number[] = [];
        for (const { pause, begin, end } of steps) {
          now += pause;
          for (let at = 0; at < begin && !isFull(tally, now, rule); at++) {
            tally = { ...tally, inFlight: tally.inFlight + 1 };
            begins.push(now);
          }
          for (let at = 0; at < end && tally.inFlight > 0; at++)
            tally = { ...failedLaunch(tally, error, now, rule), inFlight: tally.inFlight - 1 };
        }
        for (const from of begins) {
          const within = begins.filter((at) => at >= from && at < from + HOUR).length;
          // What a full bucket holds, and what drains of it within the hour.
          expect(within).toBeLessThanOrEqual(2 * failedPerHour);
        }
      },
    ),
  );
});

test("a spent budget says when there is room, and there is", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60 }), fc.nat(30), (failedPerHour, more) => {
      const rule = { ...defaultRule, failedPerHour };
      let tally = newTally(false);
      for (let count = 0; count < failedPerHour + more; count++) tally = failedLaunch(tally, error, 5, rule);
      expect(isSpent(tally, 5, rule)).toBe(true);
      const room = roomAt(tally, 5, rule);
      expect(isSpent(tally, room - 2, rule)).toBe(true);
      expect(isSpent(tally, room + 1, rule)).toBe(false);
    }),
  );
});

test("a label that works is bounded by nothing but failures in a row", () => {
  const rule = { ...defaultRule, failedPerHour: 3 };
  let tally = { ...newTally(true), inFlight: 1_000 };
  for (let row = 1; row < rule.inARow; row++) {
    tally = { ...failedLaunch(tally, error, 0, rule), inFlight: 1_000 };
    expect(isFull(tally, 0, rule) || isSpent(tally, 0, rule)).toBe(false);
  }
  expect(isSpent(failedLaunch(tally, error, 0, rule), 0, rule)).toBe(true);
});
