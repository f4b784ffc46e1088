import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { fakeProvider, type Json, launcherConfig, World } from "./rules/world.ts";

/** What a Python launcher leaves: a machine without a tag of ours, and a record as it writes them. */
async function left(
  world: World,
  fields: Json = {},
): Promise<{ readonly node: string; readonly machine: string }> {
  const machine = await world.machine("np", null, { instances: 1, cores: 4, ram: 8192 });
  const node = await world.makeNode({
    state: "ready",
    provider: "cloud",
    pool: "main",
    type: ["small"],
    launcher: "nl01.example.org-PoolWorker.cloud-main-0123456789abcdef0123456789abcdef",
    external_id: machine,
    hostname: "np0000000000",
    az: "az1",
    resources: { instances: 1, cores: 4, ram: 8192 },
    ...fields,
  });
  return { node, machine };
}

const machines = (world: World) => world.cloud.inspect().map(({ id }) => id);

// Whether such a machine may be deleted is its driver's to know, by what the Python drivers write into a cloud.
describe("what a Python launcher that was stopped has left", () => {
  test("a ready node is neither leaked nor vanished, and is given to the next request", async () => {
    const world = new World();
    const { node, machine } = await left(world);
    await world.start("a", launcherConfig([fakeProvider()]));
    await world.run(600_000);
    expect(world.node(node)?.state).toBe("ready");
    expect(machines(world)).toContain(machine);
    const asked = await world.ask();
    expect((await world.fulfilled(asked)).nodes).toEqual([node]);
  });

  test("a ready node counts for min-ready, whichever request launched it", async () => {
    const labels = new Map([
      ["small", { name: "small", minReady: 2, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
    ]);
    const world = new World();
    await left(world, { requestor: "NodePool:min-ready" });
    await left(world, { requestor: "zuul" });
    await world.start("a", launcherConfig([fakeProvider()], { labels }));
    await world.run(120_000);
    expect(world.nodes()).toHaveLength(2);
    expect(world.children(paths.requests)).toEqual([]);
  });

  test("counts for the pool, and once for the cloud's quota", async () => {
    const world = new World({ quota: { instances: 4 } });
    const used = [await left(world, { state: "in-use" }), await left(world, { state: "in-use" })];
    for (const { node } of used) await world.contend(paths.nodeLock(node));
    await world.start("a", launcherConfig([fakeProvider("cloud", {}, { "max-servers": 4 })]));
    const two = await world.ask({ node_types: ["small", "small"] });
    await world.fulfilled(two, 30_000);
    const third = await world.ask();
    await world.run(30_000);
    expect(world.request(third)?.state).not.toBe("fulfilled");
    expect(world.cloud.inspect()).toHaveLength(4);
  });

  test("a node that was locked when its request was put back is free when it is unlocked, and no longer in its way", async () => {
    const world = new World();
    const request = await world.ask({ state: "pending", node_types: ["small", "small"], tenant_name: "t" });
    const { node } = await left(world, { allocated_to: request, tenant_name: "t" });
    const lock = await world.contend(paths.nodeLock(node));
    const tenantLimits = new Map([["t", { instances: 2 }]]);
    await world.start("a", launcherConfig([fakeProvider()], { tenantLimits }));
    await world.until("it is put back", () => world.request(request)?.state === "requested");
    await world.run(5_000);
    expect(world.request(request)?.state).toBe("requested");
    await world.settle(world.other.delete(lock));
    await world.fulfilled(request, 30_000);
    expect(world.node(node)?.allocated_to ?? request).toBe(request);
  });

  test("its request, pending and unlocked, is put back and served; what it was given already is not lost", async () => {
    const world = new World();
    const request = await world.ask({ state: "pending", node_types: ["small", "small"], nodes: [] });
    const { node } = await left(world, { allocated_to: request });
    await world.start("a", launcherConfig([fakeProvider()]));
    const { nodes } = await world.fulfilled(request, 30_000);
    expect(nodes).toHaveLength(2);
    await world.run(5_000);
    const kept = world.nodes().map(({ id }) => id);
    expect(kept).toContain(node);
    expect(machines(world)).toHaveLength(kept.length);
  });
});
