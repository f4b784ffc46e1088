import { readFileSync } from "node:fs";
import { createFakeDriver, fakeConfig } from "@nodeyard/driver-fake";
import { seededRandom } from "@nodeyard/runtime";
import type { SparePolicy } from "@nodeyard/scheduler";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig } from "../../launcher/test/rig.ts";
import { compare, DemandBook, play as playWeek } from "../src/index.ts";

/**
 * A made-up week of a small team in Berlin (week.jsonl): ten jobs in a burst after nine, a dozen an hour in the core time, few at night and at the
 * weekend. A launch takes one to two and a half minutes. docs/design/spares.md has the figures.
 */
const book = new DemandBook();
book.read("week.jsonl", readFileSync(new URL("week.jsonl", import.meta.url), "utf8"));
const week = book.demand();
const WEEK = 7 * 86_400;
const driver = createFakeDriver({
  config: fakeConfig,
  cloudOf: () => {
    throw new Error("a plan contacts no cloud");
  },
}) as never;

const TARGET = { withinMs: 5_000, percent: 95, budgetPerHour: 2 };

interface Policy {
  readonly minReady?: number;
  readonly spares?: Partial<SparePolicy>;
  /** What the label may be bought as, with what an hour of it costs. */
  readonly offerings?: Readonly<Record<string, number>>;
}

async function play({ minReady = 0, spares, offerings }: Policy, demand = week) {
  const none = { min: 0, max: 20, share: 0, times: [], target: null, idleMs: 600_000, suspended: false };
  const small = { name: "small", minReady, maxReadyAgeMs: Number.POSITIVE_INFINITY };
  const bought = offerings && {
    offerings: Object.keys(offerings).map((name) => ({ "flavor-name": name })),
  };
  const labels = [{ name: "small", "cloud-image": "image", "flavor-name": "Fake Flavor", ...bought }];
  const config = launcherConfig(
    [
      fakeProvider("cloud", offerings ? { prices: offerings, "price-currency": "EUR" } : {}, {
        "max-servers": 40,
        labels,
      }),
    ],
    {
      labels: new Map([["small", { ...small, spares: spares ? { ...none, ...spares } : null }]]) as never,
    },
  );
  const played = await playWeek({ config, demand, seed: 1, driverOf: () => driver });
  const { planned } = compare(played, played).rows.find(({ label }) => label === "small")!;
  return { ...planned, waits: [...played.outcomes] };
}

/** Of what the tests compare, for the tables of the pages. */
function print(rows: Readonly<Record<string, Awaited<ReturnType<typeof play>>>>): void {
  for (const [name, { wait_median, wait_p95, idle_hours, cost }] of Object.entries(rows))
    console.log(`| ${name} | ${wait_median} | ${wait_p95} | ${idle_hours} | ${cost} |`);
}

test("a week without spares, with some all the time, by schedule, by share and for a wait", async () => {
  const times = [
    { cron: "50 8 * * mon-fri", timezone: "Europe/Berlin", spares: 8 },
    { cron: "45 9 * * mon-fri", timezone: "Europe/Berlin", spares: 3 },
    { cron: "0 18 * * mon-fri", timezone: "Europe/Berlin", spares: 0 },
  ];
  const rows = {
    none: await play({}),
    "min-ready 3": await play({ minReady: 3 }),
    schedule: await play({ spares: { times } }),
    share: await play({ spares: { share: 50 } }),
    target: await play({ spares: { target: TARGET } }),
  };
  print(rows);
  const { none, schedule, share, target } = rows;
  const always = rows["min-ready 3"];
  for (const row of Object.values(rows)) expect(row.requests).toBe(none.requests);
  expect(none.idle_hours).toBe(0);
  expect(none.wait_median).toBeGreaterThan(60);
  // Three all the time help by day and cost by night.
  expect(always.wait_median).toBe(0);
  expect(always.idle_hours).toBeGreaterThan(300);
  expect(always.cost).toBeGreaterThan(2 * none.cost);
  // The others have half of the idle hours and most of the use: most requests wait for nothing, a few for a launch.
  for (const row of [schedule, share, target]) {
    expect(row.wait_median).toBe(0);
    expect(row.wait_p95).toBeLessThan(none.wait_p95!);
    expect(row.idle_hours).toBeGreaterThan(10);
    expect(row.idle_hours).toBeLessThan(always.idle_hours / 2);
    expect(row.cost).toBeGreaterThan(none.cost);
    expect(row.cost).toBeLessThan(0.7 * always.cost);
  }
  // A share follows what is in use, so it is late for the burst, and cheapest.
  expect(share.idle_hours).toBeLessThan(schedule.idle_hours);
  expect(share.wait_p95).toBeGreaterThan(schedule.wait_p95!);
});

test("a target is met from the second week on, in which each job comes up to ten minutes sooner or later", async () => {
  const random = seededRandom(2);
  const second = week.requests.map((request) => ({
    ...request,
    ...{
      request: `200-${request.request!.slice(4)}`,
      at: request.at + WEEK + (random.float() - 0.5) * 1_200,
    },
  }));
  const requests = [...week.requests, ...second.sort((a, b) => a.at - b.at)];
  const { waits, idle_hours, cost } = await play({ spares: { target: TARGET } }, { ...week, requests });
  const served = waits.flatMap(([id, { waitMs }]) => (id.startsWith("200-") ? [waitMs] : []));
  const soon = served.filter((ms) => ms <= TARGET.withinMs).length;
  console.log(`${soon} of ${served.length} within 5 s; both weeks: ${idle_hours} idle hours, ${cost} EUR`);
  expect(served).toHaveLength(week.requests.length);
  expect(soon / served.length).toBeGreaterThan(TARGET.percent / 100);
});

test("a week on the cheapest of two offerings costs what that one costs, and nobody waits longer", async () => {
  const [spot, fixed] = [0.06, 0.2];
  const rows = {
    "one type": await play({ offerings: { fixed } }),
    "two, by price": await play({ offerings: { fixed, spot } }),
  };
  print(rows);
  const [one, two] = [rows["one type"], rows["two, by price"]];
  expect(two.waits).toEqual(one.waits);
  expect(two.cost / one.cost).toBeCloseTo(spot / fixed, 3);
});
