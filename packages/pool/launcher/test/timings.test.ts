import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { TIMING_EVENTS, Timings } from "../src/timings.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const NOW = 1_000_000_000;
const DAY = 86_400_000;

test("the youngest launches and uses are kept, of each label its own", () => {
  const timings = new Timings();
  for (let at = 0; at < 300; at++) {
    timings.launched("cloud/main", "small", at);
    timings.used("small", at);
  }
  timings.launched("cloud/main", "large", 500);
  expect(timings.launchesOf("cloud/main", "small")).toEqual(Array.from({ length: 32 }, (_, at) => at + 268));
  expect(timings.usesOf("small")).toEqual(Array.from({ length: 256 }, (_, at) => at + 44));
  expect(timings.launchesOf("cloud/main", "large")).toEqual([500]);
  expect(timings.launchesOf("other/main", "small")).toEqual([]);
  expect(timings.usesOf("large")).toEqual([]);
});

describe("what a process before this one saw", () => {
  const past = (event: "node.ready" | "node.returned" | "node.deleted", at: number, given: object = {}) =>
    ({
      at,
      event,
      request: null,
      node: "1",
      facts: { provider: "cloud", pool: "main", label: "small", ms: 7, ...given },
    }) as const;

  test("goes before what this one did, and what is old or makes no sense is left out", () => {
    const timings = new Timings();
    timings.launched("cloud/main", "small", 9);
    timings.used("small", 19);
    const events = [
      past("node.ready", NOW - DAY - 1, { ms: 1 }),
      past("node.ready", NOW - DAY, { ms: 2 }),
      past("node.ready", NOW - 1, { ms: "soon" }),
      past("node.ready", NOW - 1, { ms: -1 }),
      past("node.ready", NOW - 1, { label: null }),
      past("node.ready", NOW, { ms: 3 }),
      past("node.returned", NOW, { ms: 18 }),
      past("node.deleted", NOW),
    ];
    timings.recall(events, NOW);
    expect(timings.launchesOf("cloud/main", "small")).toEqual([2, 3, 9]);
    expect(timings.usesOf("small")).toEqual([18, 19]);
    timings.recall(
      Array.from({ length: 100 }, (_, ms) => past("node.ready", NOW, { ms })),
      NOW,
    );
    expect(timings.launchesOf("cloud/main", "small")).toHaveLength(32);
    expect(timings.launchesOf("cloud/main", "small").slice(-3)).toEqual([2, 3, 9]);
  });

  test("is what a launcher notes, of nodes that it launched and of any that users give back", async () => {
    const world = new World();
    const { journal } = await world.start("a", launcherConfig([fakeProvider()]));
    const { nodes } = await world.fulfilled(await world.ask());
    const [node] = nodes as string[];
    await world.lock(paths.nodeLock(node!));
    for (const [state, state_time] of [
      ["in-use", 100],
      ["used", 107.5],
    ] as const) {
      await world.put(paths.node(node!), { ...world.node(node!), state, state_time });
      await world.run(100);
    }
    const timings = new Timings();
    const noted = journal.events.filter(({ event }) => TIMING_EVENTS.includes(event));
    timings.recall(
      noted.map(({ event, facts }) => ({ at: NOW, event, request: null, node: null, facts })),
      NOW,
    );
    expect(timings.launchesOf("cloud/main", "small")).toHaveLength(1);
    expect(timings.usesOf("small")).toEqual([7_500]);
  });
});
