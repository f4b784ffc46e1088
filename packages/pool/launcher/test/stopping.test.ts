import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { fakeProvider, launcherConfig, staticProvider, World } from "./rules/world.ts";

const SLOW = { create: { minMs: 3_000, maxMs: 3_000 } };
const NONE = { minMs: 0, maxMs: 0 };
const slow = { latency: { ...SLOW, boot: NONE, delete: NONE, read: NONE } };
const boards = staticProvider([{ name: "10.0.0.1", labels: ["large"], "host-key-checking": false }]);

/** Virtual milliseconds that it takes. */
async function took(world: World, work: Promise<unknown>): Promise<number> {
  const began = world.clock.monotonic();
  await world.settle(work, 300_000);
  return world.clock.monotonic() - began;
}

describe("a launcher that is stopped", () => {
  test("finishes what it can within its grace, and leaves nothing locked or registered", async () => {
    const world = new World(slow);
    const { launcher, log } = await world.start("a", launcherConfig([fakeProvider(), boards]));
    const id = await world.ask({ node_types: ["small", "small"] });
    await world.until("it is being made", () => world.nodes().some(({ state }) => state === "building"));
    expect(await took(world, launcher.close(10_000))).toBeLessThan(10_000);
    expect(world.request(id)?.state).toBe("fulfilled");
    for (const { id: node } of world.nodes()) expect(world.children(paths.nodeLock(node))).toEqual([]);
    expect(world.children(paths.component("pool"))).toEqual([]);
    expect(world.children(paths.component("launcher"))).toEqual([]);
    expect(world.children("/nodeyard/elections")).not.toEqual([]);
    for (const name of world.children("/nodeyard/elections"))
      expect(world.children(`/nodeyard/elections/${name}`)).toEqual([]);
    expect(log.lines.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("gives up launches that take longer; another launcher starts again and removes the unfinished machine", async () => {
    const world = new World({ latency: { ...slow.latency, create: { minMs: 60_000, maxMs: 60_000 } } });
    const { launcher, tree } = await world.start("a", launcherConfig([fakeProvider()]));
    const id = await world.ask();
    await world.until("it is being made", () => world.nodes().some(({ state }) => state === "building"));
    expect(await took(world, launcher.close(5_000))).toBeLessThan(15_000);
    await world.settle(tree.close());
    world.cloud.adjust({ ...world.cloud.knobs, latency: { ...slow.latency, create: NONE } });
    await world.start("b", launcherConfig([fakeProvider()]));
    const { nodes } = await world.fulfilled(id, 120_000);
    await world.run(200_000);
    expect(world.cloud.inspect().map(({ tag }) => tag?.nodeId)).toEqual(nodes);
    expect(world.nodes().map(({ id: node }) => node)).toEqual(nodes);
  });

  test.each([
    ["cuts it off", "lose-request"],
    ["answers nothing any more", { delayMs: 3_600_000 }],
  ] as const)("does not wait for a tree that %s", async (_, fault) => {
    const world = new World(slow);
    const { launcher, tree } = await world.start("a", launcherConfig([fakeProvider(), boards]));
    await world.ask();
    await world.until("it is being made", () => world.nodes().some(({ state }) => state === "building"));
    world.fault = () => fault;
    const closing = (async () => {
      await launcher.close(2_000);
      await tree.close();
    })();
    expect(await took(world, closing)).toBeLessThan(15_000);
  });
});
