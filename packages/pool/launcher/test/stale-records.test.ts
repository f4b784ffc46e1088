import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { before, touches } from "./rules/before-write.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const HOUR = 3_600_000;
const OURS = { provider: "cloud", pool: "main", type: ["small"] };

/** Records that are as old as tree time says now. */
async function record(world: World, fields: object): Promise<string> {
  return world.makeNode({ ...OURS, state_time: world.clock.now() / 1000, ...fields });
}

const gone = (world: World, id: string, limitMs: number) =>
  world.until(`node ${id} is gone`, () => world.node(id) === undefined, limitMs);

/** What `explain` says happens next to a node. */
const nextOf = async (world: World, id: string) => (await world.explain("node", id)).next;

describe("held nodes", () => {
  test("go at the shorter of max-hold-age and what the holder said, and never without either", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()], { maxHoldAgeMs: 2 * HOUR }));
    const own = await record(world, {
      state: "hold",
      hold_expiration: 3_600,
      allocated_to: "100-0000000001",
    });
    const long = await record(world, { state: "hold", hold_expiration: 86_400 });
    const none = await record(world, { state: "hold" });
    await world.run(0.9 * HOUR);
    for (const id of [own, long, none]) expect(world.node(id)?.state).toBe("hold");
    const next = (id: string) => nextOf(world, id);
    const end = (id: string, seconds: number) =>
      new Date((Number(world.node(id)!.state_time) + seconds) * 1_000).toISOString();
    expect(await next(own)).toBe(`It is deleted at ${end(own, 3_600)}, or now with: nodeyard delete ${own}`);
    for (const id of [long, none])
      expect(await next(id)).toBe(
        `It is deleted at ${end(id, 7_200)} (max-hold-age), or now with: nodeyard delete ${id}`,
      );
    await gone(world, own, 0.3 * HOUR);
    expect(world.node(long)?.state).toBe("hold");
    await gone(world, long, 1.5 * HOUR);
    await gone(world, none, 60_000);

    const kept = new World();
    await kept.start("a", launcherConfig([fakeProvider()]));
    const held = await record(kept, { state: "hold" });
    await kept.run(24 * HOUR);
    expect(kept.node(held)?.state).toBe("hold");
    expect(await nextOf(kept, held)).toBe(
      `It is kept without an end, until somebody deletes it: nodeyard delete ${held}`,
    );
  });

  test("a hold under a lock is not ended, whatever its age", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()], { maxHoldAgeMs: HOUR }));
    const held = await record(world, { state: "hold" });
    const lock = await world.contend(paths.nodeLock(held));
    await world.run(3 * HOUR);
    expect(world.node(held)?.state).toBe("hold");
    await world.settle(world.other.delete(lock));
    await gone(world, held, 120_000);
  });
});

describe("records without an owner", () => {
  test("used, failed, aborted, in-use and building ones go within seconds once they are unlocked", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    for (const state of ["used", "failed", "aborted", "in-use", "building", "deleting", "deleted"])
      await record(world, { state, allocated_to: "100-0000000009" });
    await world.until("all are gone", () => world.nodes().length === 0, 10_000);
  });

  test("a node that was never locked after its creation is deleted, and so is one that is under test without a tester", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    const init = await record(world, { state: "init", allocated_to: "100-0000000009" });
    const testing = await record(world, { state: "testing", allocated_to: "100-0000000009" });
    await world.run(20_000);
    expect(world.node(init)?.state).toBe("init");
    await gone(world, init, 60_000);
    await world.run(0.9 * HOUR);
    expect(world.node(testing)?.state).toBe("testing");
    await gone(world, testing, 0.3 * HOUR);
  });

  test("a ready one whose request is gone is free again; the next request gets it", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    const lost = await record(world, {
      state: "ready",
      allocated_to: "100-0000000009",
      interface_ip: "192.0.2.1",
      resources: { instances: 1 },
    });
    await world.until("it is free", () => world.node(lost)?.allocated_to === null);
    expect((await world.fulfilled(await world.ask())).nodes).toEqual([lost]);
  });

  test("a ready one that its request, which was put back without it, has got again meanwhile is not freed", async () => {
    const world = new World();
    const request = await world.ask();
    const node = await record(world, { state: "ready", allocated_to: request });
    // Another launcher has the request, and delivers.
    await world.contend(paths.requestLock(request));
    const freed = before(world, touches(paths.nodeLock(node)), () => {
      const delivered = { ...world.request(request), state: "fulfilled", nodes: [node] };
      void world.other.set(paths.request(request), Buffer.from(JSON.stringify(delivered)));
    });
    await world.start("a", launcherConfig([fakeProvider()]));
    await world.until("it is to be freed", freed);
    await world.run(5_000);
    expect(world.node(node)).toMatchObject({ state: "ready", allocated_to: request });
  });

  test("a pending request without a handler is put back and served; its nodes are taken back", async () => {
    const world = new World();
    const id = await world.ask({ state: "pending", nodes: [], declined_by: ["somebody"] });
    const half = await record(world, { state: "building", allocated_to: id });
    const { journal } = await world.start("a", launcherConfig([fakeProvider()]));
    const { declined_by, nodes } = await world.fulfilled(id, 120_000);
    expect(declined_by).toEqual(["somebody"]);
    expect(nodes).not.toContain(half);
    await gone(world, half, 60_000);
    expect(journal.events.map(({ event }) => event)).toContain("request.reset");
  });

  test("a record of a provider that is not configured here is left to the launchers that have it", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    const foreign = await record(world, { provider: "another", state: "used" });
    await world.run(HOUR);
    expect(world.node(foreign)?.state).toBe("used");
  });
});
