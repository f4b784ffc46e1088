import type { FailureRecord } from "@nodeyard/model";
import { seededRandom } from "@nodeyard/runtime";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type FailureRule,
  failureRule,
  hasPlace,
  levelOf,
  newTally,
  onFailures,
  places,
  roomAt,
  type Tally,
  together,
} from "../src/failure-rule.ts";

const HOUR = 3_600_000;
const error = { kind: "timeout", error: "no answer", probe: false } as const;
const defaultRule = failureRule();
const random = seededRandom(1);

const failedLaunches = (tally: Tally, failures: readonly (typeof error)[], now: number, rule: FailureRule) =>
  onFailures("label", tally, undefined, failures, now, rule, random).tally;
const isSpent = (tally: Tally, now: number, rule: FailureRule) => places(tally, now, rule) === 0;
const inOrder = (ids: readonly string[]) => ({ size: ids.length, at: (index: number) => ids[index] });

/** Nodes of one label that never boots, made by whoever; all launchers see the same. */
class Crowd {
  tally = newTally(false);
  now = 1_000_000;
  readonly making: { readonly id: string; failed: boolean }[] = [];
  readonly underWay = new Set<string>();
  readonly #rule: typeof defaultRule;
  #ids = 0;

  constructor(failedPerHour: number) {
    this.#rule = failureRule(failedPerHour);
  }

  make(): void {
    this.making.push({ id: String(++this.#ids).padStart(10, "0"), failed: false });
  }

  /** One of the nodes asks, in no order. */
  begin(choice: number): void {
    const idle = this.making.filter(({ id }) => !this.underWay.has(id));
    const node = idle[choice % Math.max(1, idle.length)];
    if (node === undefined) return;
    const ids = this.making.map(({ id }) => id);
    const most = places(this.tally, this.now, this.#rule);
    if (!hasPlace(inOrder(ids), most, { node: node.id, again: node.failed }, this.#rule)) {
      // One that failed does not wait: its node is given up.
      if (node.failed) this.making.splice(this.making.indexOf(node), 1);
      return;
    }
    this.underWay.add(node.id);
  }

  /** A launch ends: it failed, or told nothing. */
  end(choice: number, failed: boolean): void {
    const id = [...this.underWay][choice % Math.max(1, this.underWay.size)];
    if (id === undefined) return;
    this.underWay.delete(id);
    const node = this.making.find((one) => one.id === id)!;
    if (failed) {
      node.failed = true;
      this.tally = failedLaunches(this.tally, [error], this.now, this.#rule);
    } else this.making.splice(this.making.indexOf(node), 1);
  }

  get committed(): number {
    return levelOf(this.tally, this.now, this.#rule) + this.underWay.size;
  }
}

const step = fc.record({
  pause: fc.oneof(fc.constant(0), fc.nat(HOUR / 4)),
  make: fc.nat(20),
  begin: fc.array(fc.nat(100), { maxLength: 20 }),
  end: fc.array(fc.tuple(fc.nat(100), fc.boolean()), { maxLength: 10 }),
});

test("no more launches of a label that never works fail than its budget allows, on any launchers and in any order", () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 40 }),
      fc.integer({ min: 1, max: 12 }),
      (steps, failedPerHour) => {
        const crowd = new Crowd(failedPerHour);
        for (const { pause, make, begin, end } of steps) {
          crowd.now += pause;
          for (let count = 0; count < make; count++) crowd.make();
          for (const choice of begin) crowd.begin(choice);
          expect(crowd.committed).toBeLessThanOrEqual(failedPerHour);
          for (const [choice, failed] of end) crowd.end(choice, failed);
        }
      },
    ),
    { numRuns: 500 },
  );
});

test("the oldest node that asks has a place while the budget is not spent: waiting nodes do not block each other", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(1_000), { minLength: 1, maxLength: 50 }),
      fc.integer({ min: 1, max: 60 }),
      (numbers, most) => {
        const ids = [...new Set(numbers)].map((number) => String(number).padStart(10, "0")).sort();
        const oldest = { node: ids[0]!, again: false };
        expect(hasPlace(inOrder(ids), most, oldest, defaultRule)).toBe(true);
        expect(hasPlace(inOrder(ids), 0, oldest, defaultRule)).toBe(false);
      },
    ),
  );
});

test("a spent budget says when there is room, and there is", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60 }), fc.nat(30), (failedPerHour, more) => {
      const rule = { ...defaultRule, failedPerHour };
      const failures = Array.from({ length: failedPerHour + more }, () => error);
      const tally = failedLaunches(newTally(false), failures, 5, rule);
      expect(isSpent(tally, 5, rule)).toBe(true);
      const room = roomAt(tally, 5, rule);
      expect(isSpent(tally, room - 2, rule)).toBe(true);
      expect(isSpent(tally, room + 1, rule)).toBe(false);
    }),
  );
});

test("a label that works is bounded by nothing but failures in a row", () => {
  const rule = { ...defaultRule, failedPerHour: 3 };
  let tally = newTally(true);
  for (let row = 1; row < rule.inARow; row++) {
    tally = failedLaunches(tally, [error], 0, rule);
    expect(places(tally, 0, rule)).toBe(Number.POSITIVE_INFINITY);
  }
  expect(places(failedLaunches(tally, [error], 0, rule), 0, rule)).toBe(0);
});

test("counts of other launchers are added once, and none are lost", () => {
  const all: FailureRecord = {
    spent: { level: 4, at: 10 },
    failures: 4,
    since: 3,
    kind: "timeout",
    error: "theirs",
  };
  const own = failedLaunches(newTally(false), [error, error], 10, defaultRule);
  const known = together(own, all, 10, defaultRule);
  expect(known).toMatchObject({ spent: all.spent, row: 4, since: 3, last: { error: "theirs" } });
  const more = failedLaunches(known, [error], 10, defaultRule);
  expect(together(more, all, 10, defaultRule)).toMatchObject({ spent: { level: 5 }, row: 5 });
  expect(together(own, undefined, 10, defaultRule)).toBe(own);
});
