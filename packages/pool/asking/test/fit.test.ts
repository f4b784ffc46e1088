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

test("of tenants with more clients than fit, the tenants stay, and the first clients", () => {
  const use = (tenant: string, client: string | null) => ({
    ...{ tenant, client, nodes: 1, waiting: 0, weight: null, perHour: { EUR: 1 }, budget: null },
  });
  const clients = Array.from({ length: 3_000 }, (_, at) => use("a", `client-${at}`));
  const tenants = [use("a", null), ...clients, use("b", null), use("b", "last")];
  const given = answer([], 0);
  const bytes = fit({ ...given, testimony: { ...given.testimony, tenants } });
  expect(bytes.length).toBeLessThanOrEqual(MOST_BYTES);
  const { testimony, leftOut } = decodeAnswer(bytes);
  expect(testimony.tenants?.filter(({ client }) => client === null)).toHaveLength(2);
  const kept = testimony.tenants?.filter(({ client }) => client !== null) ?? [];
  expect(kept).toEqual(clients.slice(0, kept.length));
  expect(kept.length).toBeGreaterThan(1_000);
  expect(leftOut).toEqual({ events: 0, pools: 0, clients: 3_001 - kept.length });
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
