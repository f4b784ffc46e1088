import { readFileSync } from "node:fs";
import { createFakeDriver, fakeConfig } from "@nodeyard/driver-fake";
import type { SparePolicy } from "@nodeyard/scheduler";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig } from "../../launcher/test/rig.ts";
import { compare, DemandBook, play } from "../src/index.ts";

/**
 * A made-up week of a small team in Berlin (week.jsonl): ten jobs in a burst after nine, a dozen an hour in the core time, few at night and at the
 * weekend. A launch takes one to two and a half minutes. docs/design/spares.md has the figures.
 */
const book = new DemandBook();
book.read("week.jsonl", readFileSync(new URL("week.jsonl", import.meta.url), "utf8"));
/** Monday and Tuesday: the other days are alike, and a test should not take minutes. */
const all = book.demand();
const days = { ...all, requests: all.requests.filter(({ at }) => at < all.requests[0]!.at + 2 * 86_400) };
const driver = createFakeDriver({
  config: fakeConfig,
  cloudOf: () => {
    throw new Error("a plan contacts no cloud");
  },
}) as never;

async function played(minReady: number, fields?: Partial<SparePolicy>) {
  const none: SparePolicy = {
    min: 0,
    max: 20,
    share: 0,
    times: [],
    target: null,
    idleMs: 600_000,
    suspended: false,
  };
  const label = { name: "small", minReady, maxReadyAgeMs: Number.POSITIVE_INFINITY };
  const spares = fields === undefined ? null : { ...none, ...fields };
  const config = launcherConfig([fakeProvider("cloud", {}, { "max-servers": 40 })], {
    labels: new Map([["small", { ...label, spares }]]) as never,
  });
  const week = await play({ config, demand: days, seed: 1, driverOf: () => driver });
  const { planned } = compare(week, week).rows.find(({ label }) => label === "small")!;
  return planned;
}

test("two days of a week without spares, with some all the time, by schedule, by share and for a wait", async () => {
  const times = [
    { cron: "50 8 * * mon-fri", timezone: "Europe/Berlin", spares: 8 },
    { cron: "45 9 * * mon-fri", timezone: "Europe/Berlin", spares: 3 },
    { cron: "0 18 * * mon-fri", timezone: "Europe/Berlin", spares: 0 },
  ];
  const target = { withinMs: 5_000, percent: 95, budgetPerHour: 2 };
  const rows = {
    none: await played(0),
    "min-ready 3": await played(3),
    schedule: await played(0, { times }),
    share: await played(0, { share: 50 }),
    target: await played(0, { target }),
  };
  // For the table of the page.
  for (const [name, { wait_median, wait_p95, idle_hours, cost }] of Object.entries(rows))
    console.log(`| ${name} | ${wait_median} | ${wait_p95} | ${idle_hours} | ${cost} |`);
  const { none, schedule, share, target: aimed } = rows;
  const always = rows["min-ready 3"];
  for (const row of Object.values(rows)) expect(row.requests).toBe(none.requests);
  expect(none.idle_hours).toBe(0);
  expect(none.wait_median).toBeGreaterThan(60);
  // Three all the time help by day and cost by night.
  expect(always.wait_median).toBe(0);
  expect(always.idle_hours).toBeGreaterThan(80);
  expect(always.cost).toBeGreaterThan(2 * none.cost);
  // The others have half of the idle hours and most of the use: most requests wait for nothing, a few for a launch.
  for (const row of [schedule, share, aimed]) {
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
