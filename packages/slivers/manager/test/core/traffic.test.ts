import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { POLICIES } from "../../src/core/profiles.ts";
import type { Traffic } from "../../src/core/record.ts";
import { countAll, countTraffic, DAY, dailyRates } from "../../src/core/traffic.ts";

/** Of the 2.0 line: 10,800,000,000 bytes a day, from 9/10 of it at the rate that is left. */
const rspec = POLICIES.v2.defaults;
const net = { rate: 8000, ceil: 1_000_000_000, share: 1 };
const day = (used: number, more: Partial<Traffic> = {}): Traffic => ({
  generation: 0,
  began: 0,
  used,
  cable: 1,
  counter: 0,
  ...more,
});

describe("what a sliver may send in a day", () => {
  test("at the threshold after twelve hours, the rest is 200 kbit/s", () => {
    const used = 1024 * rspec.netDayThreshold;
    expect(dailyRates(net, rspec, day(used - 1), undefined, DAY / 2)).toEqual(net);
    expect(dailyRates(net, rspec, day(used), undefined, DAY / 2)).toEqual({ ...net, ceil: 200_000 });
    // Traffic since the sum was remembered counts too, also by a cable that was made since.
    const sent = { cable: 1, bytes: 1 };
    expect(dailyRates(net, rspec, day(used - 1), sent, DAY / 2).ceil).toBe(200_000);
    expect(dailyRates(net, rspec, day(used - 1, { counter: 77 }), { cable: 2, bytes: 1 }, DAY / 2).ceil).toBe(
      200_000,
    );
  });

  test("with nothing left the guarantee stays; without a budget, and on the next day, nothing is taken", () => {
    const all = day(2 * 1024 * rspec.netDay);
    expect(dailyRates(net, rspec, all, undefined, 5)).toEqual({ ...net, ceil: net.rate });
    expect(dailyRates(net, { ...rspec, netDay: 0 }, all, undefined, 5)).toEqual(net);
    expect(dailyRates(net, rspec, all, undefined, DAY)).toEqual(net);
  });

  test("whatever is sent, when it is looked at and how often it starts, the sum is what was sent", () => {
    const part = fc.record({ bytes: fc.nat(10 ** 9), restart: fc.boolean(), looked: fc.boolean() });
    fc.assert(
      fc.property(fc.array(part, { maxLength: 40 }), (parts) => {
        let [cable, counter, total] = [1, 0, 0];
        let traffic = countTraffic(undefined, 1, { cable, bytes: 0 }, rspec, 0);
        for (const { bytes, restart, looked } of parts) {
          // A start is seen: the manager looks after each of its own steps.
          if (restart) {
            traffic = countTraffic(traffic, 1, { cable, bytes: counter }, rspec, 1);
            [cable, counter] = [cable + 1, 0];
          }
          [counter, total] = [counter + bytes, total + bytes];
          if (looked) traffic = countTraffic(traffic, 1, { cable, bytes: counter }, rspec, 1);
        }
        // To the hundredth that is not remembered, for each cable.
        const step = 1024 * rspec.netDay * 0.01;
        const known = traffic.used + (traffic.cable === cable ? counter - traffic.counter : counter);
        expect(known).toBeLessThanOrEqual(total);
        expect(known).toBeGreaterThan(total - step * cable);
      }),
    );
  });

  test("a name keeps its day without a sliver; a new generation, and a clock set back, begin another", () => {
    const sliver = { name: "ada", generation: 0, sent: { cable: 9, bytes: 10 ** 9 }, rspec };
    const first = countAll(new Map(), [sliver], 100);
    // What its cable had sent before anybody looked is not of this day.
    expect(first.get("ada")).toMatchObject({ began: 100, used: 0 });
    const gone = countAll(first, [], 200);
    expect(gone).toBe(first);
    const again = countAll(gone, [{ ...sliver, sent: { cable: 10, bytes: 500 } }], 300);
    expect(again.get("ada")).toMatchObject({ began: 100, used: 500, cable: 10 });
    expect(countAll(again, [{ ...sliver, generation: 1 }], 300).get("ada")).toMatchObject({
      began: 300,
      used: 0,
    });
    expect(countAll(again, [sliver], 99).get("ada")).toMatchObject({ began: 99, used: 0 });
    expect(countAll(again, [], 100 + DAY).size).toBe(0);
  });

  test("the store is not written for less than a hundredth of the budget", () => {
    const before = new Map([["ada", day(0)]]);
    const hundredth = Math.ceil(1024 * rspec.netDay * 0.01);
    const found = (bytes: number) => [{ name: "ada", generation: 0, sent: { cable: 1, bytes }, rspec }];
    expect(countAll(before, found(hundredth - 1), 10)).toBe(before);
    expect(countAll(before, found(hundredth), 10).get("ada")?.used).toBe(hundredth);
  });
});
