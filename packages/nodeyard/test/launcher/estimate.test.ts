import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { estimate, TIMING_EVENTS, Timings } from "../../src/launcher/timings.ts";
import { fakeProvider, launcherConfig, World } from "../rules/world.ts";

const NOW = 1_000_000;
const ten = [100, 100, 110, 110, 120, 120, 130, 140, 150, 300].map((s) => s * 1_000);
const here = {
  outlook: "waits",
  code: "queue.behind",
  since: null,
  nextTry: null,
  position: 1,
  waiting: 1,
  launches: true,
} as const;

describe("an estimate", () => {
  test("of what is launched at once: the usual time, and what nine of ten stay within", () => {
    const told = estimate(
      { ...here, outlook: "can", code: "pool.can" },
      { launches: ten, deliveries: [] },
      NOW,
    );
    expect(told).toEqual({ fromMs: 120_000, toMs: 300_000, sure: "well", launches: 10, deliveries: 0 });
  });

  test("of what is under way: only those that took longer count, and nothing is known beyond the longest", () => {
    const serving = { ...here, outlook: "serves", code: "handling" } as const;
    const after = (s: number) =>
      estimate({ ...serving, since: NOW - s * 1_000 }, { launches: ten, deliveries: [] }, NOW);
    expect(after(125)).toMatchObject({ fromMs: 25_000, toMs: 175_000, sure: "roughly" });
    expect(after(200)).toMatchObject({ fromMs: 100_000, sure: "guess" });
    expect(after(400)).toBeUndefined();
  });

  test("of a place in line: the pace of deliveries, which a silence slows down", () => {
    const deliveries = [NOW - 40_000, NOW - 30_000, NOW - 20_000, NOW - 10_000];
    const at = (position: number, now = NOW) =>
      estimate({ ...here, position }, { launches: [5_000, 5_000, 5_000], deliveries }, now);
    expect(at(1)).toMatchObject({ fromMs: 15_000, toMs: 25_000, sure: "roughly", deliveries: 4 });
    expect(at(4)).toMatchObject({ fromMs: 45_000, toMs: 85_000 });
    expect(at(1, NOW + 360_000)).toMatchObject({ fromMs: 105_000 });
  });

  test("of a failing offering: from the next try on, and never more than a guess", () => {
    const standing = { ...here, code: "offering.failing", nextTry: NOW + 60_000 } as const;
    expect(estimate(standing, { launches: ten, deliveries: [] }, NOW)).toMatchObject({
      fromMs: 180_000,
      sure: "guess",
    });
  });

  test.each([
    "image.waits",
    "capacity.tenant",
    "provider.failing",
    "provider.inert",
    "pool.declines",
  ] as const)("of %s nothing is said", (code) => {
    const seen = { launches: ten, deliveries: [NOW - 2_000, NOW - 1_000] };
    expect(estimate({ ...here, code }, seen, NOW)).toBeUndefined();
  });

  test("without anything seen nothing is said, but for what is there already", () => {
    const none = { launches: [], deliveries: [] };
    expect(estimate({ ...here, outlook: "can", code: "pool.can" }, none, NOW)).toBeUndefined();
    expect(estimate(here, none, NOW)).toBeUndefined();
    expect(estimate({ ...here, outlook: "can", code: "pool.can", launches: false }, none, NOW)).toMatchObject(
      {
        fromMs: 0,
      },
    );
  });

  test("is never before now, and who stands further back never comes first", () => {
    const times = fc.array(fc.integer({ min: 0, max: 1_000_000 }), { maxLength: 40 });
    fc.assert(
      fc.property(
        times,
        times,
        fc.integer({ min: 1, max: 500 }),
        fc.nat({ max: 2_000_000 }),
        (launches, at, position, now) => {
          const seen = { launches, deliveries: [...at].sort((a, b) => a - b) };
          const later = Math.max(now, seen.deliveries.at(-1) ?? 0);
          const [first, next] = [position, position + 1].map((place) =>
            estimate({ ...here, position: place }, seen, later),
          );
          expect(first === undefined).toBe(next === undefined);
          if (first === undefined || next === undefined) return;
          expect(first.fromMs).toBeGreaterThanOrEqual(0);
          expect(first.toMs).toBeGreaterThanOrEqual(first.fromMs);
          expect(next.fromMs).toBeGreaterThanOrEqual(first.fromMs);
          expect(next.toMs).toBeGreaterThanOrEqual(first.toMs);
        },
      ),
    );
  });
});

test("of several labels the slowest counts, the youngest launches are kept, and one never launched leaves all unknown", () => {
  const timings = new Timings();
  for (let at = 0; at < 100; at++) timings.launched("cloud/main", "small", at);
  timings.launched("cloud/main", "large", 500);
  timings.delivered("cloud/main", 7);
  expect(timings.seen("cloud/main", ["small"]).launches).toEqual(
    Array.from({ length: 32 }, (_, at) => at + 68),
  );
  expect(timings.seen("cloud/main", ["small", "large"])).toEqual({ launches: [500], deliveries: [7] });
  expect(timings.seen("cloud/main", ["small", "arm"]).launches).toEqual([]);
  expect(timings.seen("other/main", ["small"])).toEqual({ launches: [], deliveries: [] });
});

describe("what a process before this one saw", () => {
  const DAY = 86_400_000;
  const ready = (at: number, ms: unknown, label: unknown = "small") =>
    ({
      at,
      event: "node.ready",
      request: null,
      node: "1",
      facts: { provider: "cloud", pool: "main", label, ms },
    }) as const;
  const fulfilled = (at: number, pool: unknown = "main") => {
    const facts = { provider: "cloud", pool };
    return { at, event: "request.fulfilled", request: "1", node: null, facts } as const;
  };

  test("goes before what this one did, and what is old or makes no sense is left out", () => {
    const timings = new Timings();
    timings.launched("cloud/main", "small", 9);
    timings.delivered("cloud/main", NOW + 1);
    const events = [
      ready(NOW - DAY - 1, 1),
      ready(NOW - DAY, 2),
      ready(NOW - 1, "soon"),
      ready(NOW - 1, -1),
      ready(NOW - 1, 4, null),
      ready(NOW, 3),
      fulfilled(NOW - 600_001),
      fulfilled(NOW - 600_000),
      fulfilled(NOW, 7),
      { ...fulfilled(NOW), event: "node.deleted" },
    ];
    timings.recall(events, NOW, 50);
    expect(timings.seen("cloud/main", ["small"])).toEqual({
      launches: [2, 3, 9],
      deliveries: [NOW - 599_950, NOW + 1],
    });
    timings.recall(
      Array.from({ length: 100 }, (_, ms) => ready(NOW, ms)),
      NOW,
      0,
    );
    expect(timings.seen("cloud/main", ["small"]).launches).toHaveLength(32);
    expect(timings.seen("cloud/main", ["small"]).launches.slice(-3)).toEqual([2, 3, 9]);
  });

  test("is what a launcher notes", async () => {
    const world = new World();
    const { journal } = await world.start("a", launcherConfig([fakeProvider()]));
    await world.fulfilled(await world.ask());
    await world.fulfilled(await world.ask());
    await world.run(100);
    const events = journal.events.map(({ event, facts }) => ({
      at: NOW,
      event,
      request: null,
      node: null,
      facts,
    }));
    const noted = events.filter(({ event }) => TIMING_EVENTS.includes(event));
    const timings = new Timings();
    timings.recall(noted, NOW, 0);
    const seen = timings.seen("cloud/main", ["small"]);
    expect(seen.launches).toHaveLength(2);
    expect(seen.deliveries).toHaveLength(2);
  });
});
