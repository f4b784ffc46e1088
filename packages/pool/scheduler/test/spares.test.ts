import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type SparePolicy, spareNumber } from "../src/spares.ts";
import { componentOf, node, policy, pool, SchedulerFixture } from "./world.ts";

const HOUR = 3_600_000;
const at = (text: string) => Date.parse(text);
const spares = (fields: Partial<SparePolicy> = {}): SparePolicy => ({
  min: 0,
  max: Number.POSITIVE_INFINITY,
  share: 0,
  times: [],
  target: null,
  idleMs: 600_000,
  suspended: false,
  ...fields,
});
const none = { inUse: 0, demand: undefined };

describe("how many spares", () => {
  const berlin = [
    { cron: "45 8 * * mon-fri", timezone: "Europe/Berlin", spares: 8 },
    { cron: "0 18 * * mon-fri", timezone: "Europe/Berlin", spares: 1 },
  ];

  test("by the calendar of a time zone, from the moment itself on, also over a weekend and a change of the clocks", () => {
    const number = (text: string) => spareNumber(spares({ times: berlin }), none, at(text));
    expect(number("2026-03-27T07:44:59.999Z").spares).toBe(1);
    expect(number("2026-03-27T07:45:00Z")).toEqual({ spares: 8, until: at("2026-03-27T17:00:00Z") });
    expect(number("2026-03-28T12:00:00Z")).toEqual({ spares: 1, until: at("2026-03-30T06:45:00Z") });
    // On Sunday the clocks went forward, so a quarter to nine is an hour earlier.
    expect(number("2026-03-30T06:45:00Z").spares).toBe(8);
  });

  test("the larger of a floor, a share of what is in use and the calendar, and never more than the ceiling", () => {
    const all = spares({ min: 2, max: 6, share: 10, times: berlin });
    const number = (inUse: number, text: string) => spareNumber(all, { ...none, inUse }, at(text)).spares;
    expect(number(0, "2026-03-27T03:00:00Z")).toBe(2);
    expect(number(31, "2026-03-27T03:00:00Z")).toBe(4);
    expect(number(0, "2026-03-27T09:00:00Z")).toBe(6);
  });

  describe("for a target", () => {
    const now = at("2026-03-27T10:00:00Z");
    const target = { withinMs: 5_000, percent: 95, budgetPerHour: null };
    const launches = [100_000, 105_000];
    const number = (fields: object, demand: object, asked: readonly number[]) =>
      spareNumber(
        spares({ target: { ...target, ...fields } }),
        { inUse: 0, demand: { asked, launches, ...demand } },
        now,
      );
    const burst = [0, 1, 2, 3, 4].map((second) => now - HOUR / 2 + second * 1_000);

    test("as many as were asked for within a launch; none where launches are quick enough, or nothing is known", () => {
      expect(number({}, {}, burst)).toEqual({ spares: 5, until: now + 600_000 });
      // 100 s between two of them, which is how long a launch may take beyond the wait.
      expect(
        number(
          {},
          {},
          [3, 2, 1].map((times) => now - times * 101_000),
        ).spares,
      ).toBe(1);
      expect(number({}, { launches: [4_000] }, burst).spares).toBe(0);
      expect(number({}, { launches: [] }, burst).spares).toBe(0);
      expect(number({}, {}, []).spares).toBe(0);
      expect(spareNumber(spares({ target }), none, now).spares).toBe(0);
    });

    test("the hour that came a week ago counts, yesterday's does not", () => {
      const past = (ms: number) => burst.map((each) => each + HOUR - ms);
      expect(number({}, {}, past(7 * 24 * HOUR)).spares).toBe(5);
      expect(number({}, {}, past(24 * HOUR)).spares).toBe(0);
    });

    test("within a budget, which no price keeps to", () => {
      expect(number({ budgetPerHour: 1 }, { perHour: 0.3 }, burst).spares).toBe(3);
      expect(number({ budgetPerHour: 1 }, { perHour: 0 }, burst).spares).toBe(5);
      expect(number({ budgetPerHour: 1 }, {}, burst).spares).toBe(0);
    });

    test("is what replacement after a launch needs: so many percent of any past hour would have found a spare", () => {
      const gaps = fc.array(fc.integer({ min: 0, max: 60_000 }), { minLength: 1, maxLength: 60 });
      fc.assert(
        fc.property(gaps, fc.integer({ min: 1, max: 100 }), (all, percent) => {
          const asked: number[] = [];
          let last = now - HOUR;
          for (const gap of all) {
            last += gap;
            asked.push(last);
          }
          const past = asked.filter((each) => each < now);
          const count = number({ percent }, {}, past).spares;
          // Replayed: a node that is taken is replaced a launch later, as long as so many percent of the two launches took.
          const window = launches[percent <= 50 ? 0 : 1]! - target.withinMs;
          const found = past.filter(
            (each) => past.filter((other) => other <= each && other > each - window).length <= count,
          );
          // Equal instants are served in order, so the count above is at most too large for them.
          expect(found.length).toBeGreaterThanOrEqual(
            Math.floor((percent / 100) * past.length) - (past.length - new Set(past).size),
          );
        }),
      );
    });
  });
});

describe("the scheduler keeps the number", () => {
  const ours = pool();
  const us = { ...componentOf(ours), key: "pool/b0000000002" };
  const id = (number: number) => String(number).padStart(10, "0");
  const fixture = (fields: Partial<SparePolicy>, minReady = 0) => {
    const label = {
      name: "small",
      minReady,
      maxReadyAgeMs: Number.POSITIVE_INFINITY,
      spares: spares(fields),
    };
    return new SchedulerFixture(policy([ours], { labels: new Map([["small", label]]) }), [us]);
  };
  /** Its first requests were made when it began. */
  const asks = (scheduler: SchedulerFixture) =>
    scheduler.tell({ type: "min-ready-requested", label: "small" });
  const of = (type: string, actions: readonly { type: string }[]) =>
    actions.filter((one) => one.type === type);

  test("asks for what is missing; min-ready is a floor", () => {
    expect(of("min-ready", asks(fixture({ min: 3 })))).toEqual([
      { type: "min-ready", label: "small", count: 3 },
    ]);
    expect(of("min-ready", asks(fixture({ min: 3 }, 5)))).toMatchObject([{ count: 5 }]);
  });

  test("asks for more with each node that is used, and when a time of day comes", () => {
    const share = fixture({ share: 50 });
    for (const number of [1, 2, 3])
      share.tell({ type: "node", id: id(number), after: node(id(number), { state: "in-use" }, ["x"]) });
    expect(of("min-ready", asks(share))).toMatchObject([{ count: 2 }]);
    const daily = fixture({
      times: [
        { cron: "1 0 1 1 *", timezone: "UTC", spares: 2 },
        { cron: "2 0 1 1 *", timezone: "UTC", spares: 0 },
      ],
    });
    expect(of("min-ready", daily.wait(59_999))).toEqual([]);
    expect(of("min-ready", daily.wait(1))).toMatchObject([{ count: 2 }]);
  });

  test("a free node beyond the number goes after its time, and not before; what is wanted stays", () => {
    const two = fixture({ min: 1, idleMs: 10_000 });
    for (const number of [1, 2]) two.tell({ type: "node", id: id(number), after: node(id(number)) });
    expect(of("delete", two.wait(9_999))).toEqual([]);
    expect(of("delete", two.wait(1))).toMatchObject([
      { node: id(1), why: "a spare that is not wanted any more" },
    ]);
    two.gone("node", id(1));
    expect(of("delete", two.wait(60_000))).toEqual([]);
  });

  test("without spares a free node stays, and while the clock is not trusted, too", () => {
    const label = { name: "small", minReady: 0, maxReadyAgeMs: Number.POSITIVE_INFINITY };
    const plain = new SchedulerFixture(policy([ours], { labels: new Map([["small", label]]) }), [us]);
    plain.tell({ type: "node", id: id(1), after: node(id(1)) });
    expect(of("delete", plain.wait(HOUR))).toEqual([]);
    const jumped = fixture({ idleMs: 10_000 });
    jumped.tell({ type: "ages", trusted: false });
    jumped.tell({ type: "node", id: id(1), after: node(id(1)) });
    expect(of("delete", jumped.wait(HOUR))).toEqual([]);
    expect(of("delete", jumped.tell({ type: "ages", trusted: true }))).toHaveLength(1);
  });
});
