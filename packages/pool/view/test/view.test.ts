import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { Counters, memoryLog } from "@nodeyard/telemetry";
import { type Change, createMemoryTree, type Tree } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { View } from "../src/index.ts";

test("rule 5: a view is complete when each of its roots was read whole, and not while one of them has a gap", async () => {
  const roots = new Map<string, (change: Change) => void>();
  const feed: Tree["feed"] = (root, { onChange }) => {
    roots.set(root, onChange);
    return { synced: Promise.resolve(), close: async () => {} } as ReturnType<Tree["feed"]>;
  };
  const handles = { clock: new VirtualClock(), random: seededRandom(1), log: memoryLog() };
  const view = new View({ tree: { feed } as Tree, ...handles, counters: new Counters() });
  await view.start();
  expect(roots.size).toBeGreaterThan(1);
  for (const tell of roots.values()) {
    expect(view.complete).toBe(false);
    tell({ type: "synced" });
  }
  for (const tell of roots.values()) {
    expect(view.complete).toBe(true);
    tell({ type: "gap" });
    expect(view.complete).toBe(false);
    tell({ type: "synced" });
  }
});

test("a comparison lists no folder whose records are not in the view: limits, elections and members grow with the installation", async () => {
  const clock = new VirtualClock();
  const listed = new Set<string>();
  const cluster = createMemoryTree({
    clock,
    random: seededRandom(1),
    faults: ({ kind, path }) => void (kind === "children" && listed.add(path)),
  });
  const tree = cluster.connect({ name: "view", latencyMs: [0, 0] });
  const made = (async () => {
    await tree.create("/nodeyard");
    for (const name of ["limits", "elections", "members", "installation", "leases"])
      await tree.create(`/nodeyard/${name}`);
  })();
  await clock.advance(1_000);
  await made;
  const view = new View({ tree, clock, random: seededRandom(1), log: memoryLog(), counters: new Counters() });
  const started = view.start();
  await clock.advance(1_000);
  await started;
  expect(listed).toContain("/nodeyard/leases");
  for (const path of ["", "/limits", "/elections", "/members", "/installation"])
    expect(listed).not.toContain(`/nodeyard${path}`);
});

test("comparisons that take long come less often, unless it was the connection that took long", async () => {
  const clock = new VirtualClock();
  let comparisons = 0;
  const cluster = createMemoryTree({
    clock,
    random: seededRandom(1),
    faults: ({ kind, path }) => {
      if (kind !== "sync" || path !== "/nodepool/nodes") return undefined;
      comparisons++;
      return { delayMs: 10_000 };
    },
  });
  const tree = cluster.connect({ name: "view", latencyMs: [0, 0] });
  const view = new View({ tree, clock, random: seededRandom(1), log: memoryLog(), counters: new Counters() });
  const started = view.start();
  await clock.advance(1_000);
  await started;
  const inHalfAnHour = async (each: () => void) => {
    comparisons = 0;
    for (let second = 0; second < 1_800; second++) {
      await clock.advance(1_000);
      each();
    }
    return comparisons;
  };
  expect(await inHalfAnHour(() => {})).toBeLessThanOrEqual(8);
  let seen = 0;
  const often = await inHalfAnHour(() => {
    if (comparisons > seen) tree.disconnect();
    seen = comparisons;
  });
  expect(often).toBeGreaterThan(20);
});
