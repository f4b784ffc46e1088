import { paths } from "@nodeyard/model";
import { seededRandom } from "@nodeyard/runtime";
import { Counters, memoryLog } from "@nodeyard/telemetry";
import { View } from "@nodeyard/view";
import { expect, test } from "vitest";
import { World } from "../../launcher/test/rules/world.ts";
import { takeoverFacts } from "../src/index.ts";

test("requests that only this provider can serve: no other pool has all of their labels", async () => {
  const world = new World();
  await world.folder(paths.nodes);
  for (const labels of [["small"], ["board", "lamp"], ["small", "lamp"]])
    await world.pythonPool(labels.includes("board") ? "lab" : "cloud", labels);
  const ask = (labels: readonly string[], state: string) => world.ask({ node_types: labels, state });
  const board = await ask(["board"], "requested");
  const pair = await ask(["board", "lamp"], "pending");
  const lamp = await ask(["lamp"], "requested");
  for (const [labels, state] of [
    [["small"], "requested"],
    [["board"], "fulfilled"],
  ] as const)
    await ask(labels, state);
  const tree = world.cluster.connect({ name: "takeover" });
  const { clock } = world;
  const view = new View({ tree, clock, random: seededRandom(1), log: memoryLog(), counters: new Counters() });
  await world.settle(view.start());
  const facts = await world.settle(takeoverFacts({ tree }, view, "lab", new Set(["board", "lamp"])));
  expect(facts).toMatchObject({
    waiting: [board, lamp],
    taken: [{ id: pair }],
    onlyServedHere: [board, pair],
    onlyHere: ["board"],
    otherPython: 2,
  });
  await world.settle(view.close());
});
