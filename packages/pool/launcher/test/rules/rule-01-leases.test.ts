import { type Lease, leaseRequestor, paths } from "@nodeyard/model";
import { askForNodes, releaseLease } from "@nodeyard/operations";
import type { Clock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { handles, leaseOf } from "./lease-world.ts";
import { fakeProvider, launcherConfig, World } from "./world.ts";

const ask = (world: World, fields: object = {}): Promise<Lease> =>
  world.settle(askForNodes(handles(world), { labels: ["small"], owner: "me", forMs: 600_000, ...fields }));

const granted = (world: World, id: string) =>
  world.until(`lease ${id} is granted`, () => leaseOf(world, id)?.state === "granted" && leaseOf(world, id));

describe("leases", () => {
  test("are held by exactly one durable contender, also when several launchers see them at once", async () => {
    const world = new World();
    const config = launcherConfig([fakeProvider()]);
    const members = [
      await world.start("a", config),
      await world.start("b", config),
      await world.start("c", config),
    ];
    const asked = await ask(world, { labels: ["small", "small"] });
    const { nodes } = (await granted(world, asked.id)) as { nodes: string[] };
    expect(world.request(asked.request!)).toBeUndefined();
    await world.run(5_000);
    for (const id of nodes) {
      expect(world.node(id)?.state).toBe("in-use");
      const names = world.children(paths.nodeLock(id));
      expect(names).toHaveLength(1);
      const contender = `${paths.nodeLock(id)}/${names[0]}`;
      expect(world.text(contender)).toBe(leaseRequestor(asked.id));
      expect(world.cluster.znodes.stat(contender)?.ephemeralOwner).toBe(0n);
    }
    for (const { tree } of members) tree.expire();
    await world.run(30_000);
    for (const id of nodes) expect(world.node(id)?.state).toBe("in-use");
    const release = () => world.settle(releaseLease(handles(world), asked.id));
    expect(await release()).toBe("released");
    await world.until(
      "all is returned",
      () => world.nodes().length === 0 && leaseOf(world, asked.id) === undefined,
    );
    expect(await release()).toBe("unknown");
    for (const { log } of members) expect(log.lines.filter(({ level }) => level === "warn")).toEqual([]);
  });

  test("a request whose lease is gone is deleted, and its nodes are free", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    const id = await world.ask({
      requestor: leaseRequestor("0123456789ab"),
      requestor_data: { lease: "0123456789ab" },
    });
    await world.until("the request is gone", () => world.request(id) === undefined, 90_000);
    await world.until("no node is allocated to it", () =>
      world.nodes().every((node) => node.allocated_to === null),
    );
  });

  test("an invalid lease is logged once, and not asked about again", async () => {
    const world = new World();
    const { log, counters } = await world.start("a", launcherConfig([fakeProvider()]));
    await world.put("/nodeyard/leases/bad", "nonsense");
    await world.put("/nodeyard/leases/newer", { v: 99 });
    const fine = await ask(world);
    await granted(world, fine.id);
    await world.run(300_000);
    for (const lease of ["bad", "newer"]) {
      const lines = log.lines.filter(({ facts }) => (facts as { lease?: string }).lease === lease);
      expect(lines).toHaveLength(1);
    }
    expect(counters.value("view.records_skipped", { kind: "lease" })).toBe(2);
  });

  test("whose nodes vanish before they are held fails instead of waiting for its end", async () => {
    const world = new World();
    const { tree, log } = await world.start("a", launcherConfig([fakeProvider()]));
    world.fault = ({ path, kind }) =>
      kind === "children" && path.endsWith("/lock") ? { delayMs: 50 } : undefined;
    const asked = await ask(world);
    const held = await world.until("a node is there", () =>
      world.nodes().find((node) => node.state === "ready" && node.allocated_to === asked.request),
    );
    // An operator deletes the record by hand.
    tree.disconnect(true);
    for (const name of world.children(paths.nodeLock(held.id)))
      await world.settle(world.other.delete(`${paths.nodeLock(held.id)}/${name}`));
    if (world.cluster.znodes.stat(paths.nodeLock(held.id)) !== undefined)
      await world.settle(world.other.delete(paths.nodeLock(held.id)));
    await world.settle(world.other.delete(paths.node(held.id)));
    tree.reconnect();
    await world.until("the lease ended or got another node", () => {
      const state = leaseOf(world, asked.id)?.state;
      return state === "failed" || state === "granted";
    });
    await world.run(60_000);
    expect(log.lines.filter(({ text }) => text.startsWith("cannot process a lease")).length).toBeLessThan(5);
  });

  test("end at their time by the tree's clock, also when the launcher's wall clock jumps", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    const asked = await ask(world, { forMs: 3_600_000 });
    await granted(world, asked.id);
    world.clock.jump(-86_400_000);
    await world.run(10_000);
    world.clock.jump(86_400_000);
    await world.run(3_400_000);
    expect(leaseOf(world, asked.id)?.state).toBe("granted");
    await world.run(300_000);
    await world.until("it ended", () => leaseOf(world, asked.id) === undefined);
  });

  test.each([-300_000, 300_000])(
    "last as long as was asked for, by a client whose clock is %i ms off",
    async (off) => {
      const world = new World();
      await world.start("a", launcherConfig([fakeProvider()]));
      await world.run(1_000);
      const clock: Clock = Object.create(world.clock, { now: { value: () => world.clock.now() + off } });
      const { id } = await world.settle(
        askForNodes({ ...handles(world), clock }, { labels: ["small"], owner: "me", forMs: 60_000 }),
      );
      await granted(world, id);
      await world.run(50_000);
      expect(leaseOf(world, id)?.state).toBe("granted");
      await world.run(20_000);
      expect(leaseOf(world, id)).toBeUndefined();
    },
  );
});
