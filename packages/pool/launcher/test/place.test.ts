import type { Driver } from "@nodeyard/driver";
import { createFakeDriver, FakeCloud, fakeConfig, INSTANT } from "@nodeyard/driver-fake";
import { paths } from "@nodeyard/model";
import { seededRandom } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import type { LauncherConfig } from "../src/index.ts";
import { fakeProvider, launcherConfig, staticProvider, World } from "./rules/world.ts";

/** A second cloud beside the world's own; `cloud:` of a provider says which of them it works in. */
function twoClouds(world: World) {
  const east = new FakeCloud({
    clock: world.clock,
    random: seededRandom(3),
    knobs: { ...INSTANT, quota: {} },
  });
  const driver = createFakeDriver({
    config: fakeConfig,
    cloudOf: (own) => (own.cloud === "east" ? east : world.cloud),
  }) as unknown as Driver;
  return { east, wrap: () => driver };
}

const west = (fields: object = {}) => launcherConfig([fakeProvider("cloud", { cloud: "west", ...fields })]);
const inEast = launcherConfig([fakeProvider("cloud", { cloud: "east" })]);

const machines = (cloud: FakeCloud) => cloud.inspect().length;

/** A free node. */
async function freeNode(world: World): Promise<string> {
  const request = await world.ask();
  const [node] = (await world.fulfilled(request)).nodes as string[];
  await world.settle(world.other.delete(paths.request(request)));
  await world.until("it is free", () => world.node(node!)?.allocated_to === null);
  return node!;
}

/** A node that a client uses; `giveBack` returns it. */
async function usedNode(world: World) {
  const request = await world.ask();
  const [node] = (await world.fulfilled(request)).nodes as string[];
  const lock = await world.lock(paths.nodeLock(node!));
  await world.settle(world.other.delete(paths.request(request)));
  await world.put(paths.node(node!), { ...world.node(node!), state: "in-use" });
  const giveBack = async () => {
    await world.put(paths.node(node!), { ...world.node(node!), state: "used" });
    await world.settle(world.other.delete(lock));
  };
  return { node: node!, giveBack };
}

describe("a provider that works in another place than before", () => {
  test("does not give its nodes out there, and deletes them with the settings that they were made with", async () => {
    const world = new World();
    const { wrap, east } = twoClouds(world);
    const { launcher, log, counters } = await world.start("a", west(), { wrap });
    const used = await usedNode(world);
    const free = await freeNode(world);
    await world.settle(launcher.reconfigure(inEast));
    const request = await world.ask();
    const { nodes } = await world.fulfilled(request);
    expect(nodes).not.toContain(free);
    expect(machines(east)).toBe(1);
    await world.until("the free node is deleted", () => world.node(free) === undefined, 120_000);
    // Long enough for sweeps to take it for gone.
    await world.run(300_000);
    expect(world.node(used.node)?.state).toBe("in-use");
    await used.giveBack();
    await world.until("the used node is deleted", () => world.node(used.node) === undefined, 120_000);
    expect(machines(world.cloud)).toBe(0);
    expect(counters.value("launcher.vanished")).toBe(0);
    const said = log.lines.find(
      ({ level, text }) => level === "error" && text.includes("does not work any more"),
    );
    expect(said?.facts).toMatchObject({
      provider: "cloud",
      place: "cloud west",
      now: "cloud east",
      nodes: 2,
    });
  });

  test("after a restart its nodes are kept and said to be elsewhere, and deleted when the settings are back", async () => {
    const world = new World();
    const { wrap } = twoClouds(world);
    const before = await world.start("a", west(), { wrap });
    const free = await freeNode(world);
    await world.settle(before.launcher.close());
    const { launcher, log, counters } = await world.start("b", inEast, { wrap });
    await world.put(paths.node(free), { ...world.node(free), state: "used" });
    await world.run(600_000);
    expect(world.node(free)?.state).toBe("deleting");
    expect(machines(world.cloud)).toBe(1);
    expect(counters.value("launcher.vanished")).toBe(0);
    const [failed] = log.lines.filter(({ text }) => text.includes("does not work any more"));
    expect(failed?.facts).toMatchObject({ place: "cloud west", now: "cloud east", nodes: 1 });
    await world.settle(launcher.reconfigure(west()));
    await world.settle(world.other.delete(`/nodeyard/dead-letters/${free}`).catch(() => {}));
    await world.until("it is deleted", () => world.node(free) === undefined, 2_400_000);
    expect(machines(world.cloud)).toBe(0);
  });

  test("whose place only got another name deletes what it finds by its tag", async () => {
    const world = new World();
    // Both names lead to one cloud.
    const before = await world.start("a", west());
    const free = await freeNode(world);
    await world.settle(before.launcher.close());
    await world.start("b", launcherConfig([fakeProvider("cloud", { cloud: "the west" })]));
    await world.put(paths.node(free), { ...world.node(free), state: "used" });
    await world.until("it is deleted", () => world.node(free) === undefined);
    expect(machines(world.cloud)).toBe(0);
  });
});

describe("a provider that leaves the configuration with nodes", () => {
  const nothing: LauncherConfig = launcherConfig([fakeProvider("other")]);

  test("is cleared away with its last settings: free nodes at once, others when they come back", async () => {
    const world = new World();
    const { launcher, log } = await world.start("a", west());
    const used = await usedNode(world);
    const free = await freeNode(world);
    await world.settle(launcher.reconfigure(nothing));
    const said = log.lines.find(
      ({ level, text }) => level === "error" && text.includes("left the configuration"),
    );
    expect(said?.facts).toMatchObject({ provider: "cloud", nodes: 2 });
    await world.until("the free node is deleted", () => world.node(free) === undefined);
    expect(world.node(used.node)?.state).toBe("in-use");
    await used.giveBack();
    await world.until("the used node is deleted", () => world.node(used.node) === undefined, 120_000);
    expect(machines(world.cloud)).toBe(0);
  });

  test("that another launcher still serves keeps them", async () => {
    const world = new World();
    const { launcher } = await world.start("a", west());
    await world.start("b", west());
    const free = await freeNode(world);
    await world.settle(launcher.reconfigure(nothing));
    await world.run(300_000);
    expect(world.node(free)?.state).toBe("ready");
  });

  test("with hosts of its own gives up their records", async () => {
    const world = new World();
    const hosts = [
      { name: "board.example", labels: ["small"], username: "zuul", "host-key-checking": false },
    ];
    const { launcher } = await world.start("a", launcherConfig([staticProvider(hosts)]));
    await world.until("it is registered", () => world.nodes()[0]?.state === "ready");
    await world.settle(launcher.reconfigure(nothing));
    await world.until("it is gone", () => world.nodes().length === 0, 120_000);
  });

  test("whose launcher is gone, too, is reported once", async () => {
    const world = new World();
    const before = await world.start("a", west());
    await freeNode(world);
    await world.settle(before.launcher.close());
    const { log, launcher } = await world.start("b", nothing);
    await world.run(300_000);
    const said = log.lines.filter(({ text }) => text.includes("no launcher serves a provider"));
    expect(said.map(({ level, facts }) => [level, facts])).toEqual([
      ["error", { provider: "cloud", nodes: 1 }],
    ]);
    expect(launcher.stranded()).toEqual([{ why: "unserved", provider: "cloud", place: null, nodes: 1 }]);
  });
});
