import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import type { Change, Tree } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { Counters, memoryLog } from "../../src/telemetry/index.ts";
import { View } from "../../src/view/index.ts";

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
