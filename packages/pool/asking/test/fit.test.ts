import fc from "fast-check";
import { expect, test } from "vitest";
import { fit, MOST_BYTES } from "../src/fit.ts";
import { decodeAnswer, type PoolOutlook } from "../src/records.ts";

const who = { member: "host-1", hostname: "host", version: "1" };

function answer(sizes: readonly number[], pools: number) {
  const events = sizes.map((size, at) => ({
    at,
    event: "node.console",
    request: null,
    node: "0000000001",
    facts: { text: "ü".repeat(size) },
  }));
  const standings = Array.from(
    { length: pools },
    (_, at): PoolOutlook => ({
      pool: `cloud/${at}`,
      provider: "cloud",
      outlook: "waits",
      code: "capacity.pool",
      facts: { limit: 1, filler: "x".repeat(100) },
      since: 1,
      nextTry: null,
      position: null,
      waiting: 0,
      estimate: null,
      unknown: null,
    }),
  );
  return { ...who, testimony: { wait: null, pools: standings, underWay: [], events, problem: null } };
}

test("an answer fits, keeps the youngest events, and says how much it left out", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat({ max: 400 }), { maxLength: 60 }),
      fc.nat({ max: 20 }),
      fc.integer({ min: 500, max: 20_000 }),
      (sizes, pools, most) => {
        const given = answer(sizes, pools);
        const bytes = fit(given, most);
        expect(bytes.length).toBeLessThanOrEqual(most);
        const { testimony, leftOut } = decodeAnswer(bytes);
        expect(testimony.events).toEqual(given.testimony.events.slice(leftOut.events));
        expect(testimony.pools.length + leftOut.pools).toBe(pools);
        if (leftOut.pools > 0) expect(testimony.events).toEqual([]);
        // As much as fits: with one more event it would not.
        if (leftOut.pools > 0 || leftOut.events === 0) return;
        const more = { ...given.testimony, events: given.testimony.events.slice(leftOut.events - 1) };
        const longer = fit({ ...given, testimony: more }, Number.POSITIVE_INFINITY);
        expect(longer.length + String(leftOut.events).length).toBeGreaterThan(most);
      },
    ),
  );
});

test("what a member says stays far below what a znode holds", () => {
  const bytes = fit(
    answer(
      Array.from({ length: 200 }, () => 8_000),
      50,
    ),
  );
  expect(bytes.length).toBeLessThanOrEqual(MOST_BYTES);
  expect(decodeAnswer(bytes).testimony.events.length).toBeGreaterThan(10);
});
