import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { handles, leaseOf } from "../../launcher/test/rules/lease-world.ts";
import { fakeProvider, launcherConfig, World } from "../../launcher/test/rules/world.ts";
import { askForNodesOnce, keepLease, releaseLease } from "../src/index.ts";

const ID = "0123456789ab";
const wanted = { labels: ["small"], owner: "token:ci", forMs: 3_600_000 };

async function running(): Promise<World> {
  const world = new World();
  await world.start("a", launcherConfig([fakeProvider()]));
  return world;
}

const client = (world: World) =>
  handles(world, world.cluster.connect({ name: "client", sessionTimeoutMs: 10_000 }));
const granted = (world: World) =>
  world.until("it is granted", () => leaseOf(world, ID)?.state === "granted" && leaseOf(world, ID));

describe("a request that is repeated", () => {
  test("is made once, also by two processes at the same moment", async () => {
    const world = await running();
    const [a, b, ...others] = await world.settle(
      Promise.all(Array.from({ length: 5 }, () => askForNodesOnce(client(world), ID, wanted))),
    );
    expect([a, b, ...others].filter((one) => one?.made)).toHaveLength(1);
    await granted(world);
    expect(world.children(paths.nodes)).toHaveLength(1);
    const again = await world.settle(askForNodesOnce(client(world), ID, wanted));
    expect(again).toMatchObject({ made: false, lease: { id: ID, state: "granted" } });
    await world.run(10_000);
    expect(world.children(paths.nodes)).toHaveLength(1);
  });

  test("for something else is refused", async () => {
    const world = await running();
    await world.settle(askForNodesOnce(client(world), ID, wanted));
    for (const other of [{ labels: ["large"] }, { owner: "token:other" }, { tenant: "t" }])
      await expect(
        world.settle(askForNodesOnce(client(world), ID, { ...wanted, ...other })),
      ).rejects.toMatchObject({ code: "lease.key_used" });
  });

  // The writes: both roots, the lease, the request with the lease, the request's id in the lease.
  test.each([0, 1, 2, 3, 4, 5])("is made once, whichever reply was lost: write %i", async (at) => {
    const world = await running();
    let writes = 0;
    world.fault = ({ client: who, kind }) =>
      who === "client" && kind === "write" && writes++ === at ? "lose-reply" : undefined;
    const asking = client(world);
    await world.settle(askForNodesOnce(asking, ID, wanted).catch(() => {}));
    world.fault = () => undefined;
    await world.settle(askForNodesOnce(client(world), ID, wanted));
    await granted(world);
    await world.run(10_000);
    expect(world.children(paths.requests)).toEqual([]);
    expect(world.nodes()).toHaveLength(1);
  });
});

describe("a lease with a heartbeat", () => {
  const beating = { ...wanted, heartbeatMs: 30_000 };

  test("lasts as long as heartbeats come, and ends its time after the last: not before, and not never", async () => {
    const world = await running();
    await world.settle(askForNodesOnce(client(world), ID, beating));
    await granted(world);
    for (let beats = 0; beats < 20; beats++) {
      await world.run(25_000);
      await world.settle(keepLease(client(world), ID));
    }
    // The client is killed.
    await world.run(29_000);
    expect(leaseOf(world, ID)?.state).toBe("granted");
    expect(world.nodes()).toMatchObject([{ state: "in-use" }]);
    await world.run(2_000);
    await world.until(
      "all is returned",
      () => leaseOf(world, ID) === undefined && world.nodes().length === 0,
    );
    await expect(world.settle(keepLease(client(world), ID))).rejects.toMatchObject({ code: "lease.ended" });
  });

  test("ends while it still waits, too, and its request with it", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider("cloud", {}, { "max-servers": 0 })]));
    await world.settle(askForNodesOnce(client(world), ID, { ...beating, labels: ["small"] }));
    await world.run(29_000);
    expect(leaseOf(world, ID)).toBeDefined();
    await world.run(5_000);
    expect(leaseOf(world, ID)).toBeUndefined();
    expect(world.children(paths.requests)).toEqual([]);
  });

  test("is never kept beyond what was asked for, unless it is extended", async () => {
    const world = await running();
    await world.settle(askForNodesOnce(client(world), ID, { ...beating, forMs: 60_000 }));
    await granted(world);
    const beat = () => world.settle(keepLease(client(world), ID));
    await world.run(20_000);
    await beat();
    await world.settle(keepLease(client(world), ID, { forMs: 70_000 }));
    for (let beats = 0; beats < 3; beats++) {
      await world.run(20_000);
      await beat();
    }
    await world.run(5_000);
    expect(leaseOf(world, ID)?.state).toBe("granted");
    await world.run(10_000);
    expect(leaseOf(world, ID)).toBeUndefined();
  });

  test("is kept by a launcher that was started after it", async () => {
    const world = await running();
    await world.settle(askForNodesOnce(client(world), ID, beating));
    await granted(world);
    await world.run(20_000);
    await world.settle(keepLease(client(world), ID));
    await world.start("b", launcherConfig([fakeProvider()]));
    await world.run(29_000);
    expect(leaseOf(world, ID)?.state).toBe("granted");
    await world.run(3_000);
    expect(leaseOf(world, ID)).toBeUndefined();
  });
});

test("a lease that has ended is not kept, also while no launcher returns its nodes", async () => {
  const world = new World();
  const kept = () => world.settle(keepLease(client(world), ID, { forMs: 60_000 }));
  const asked = await world.settle(askForNodesOnce(client(world), ID, { ...wanted, forMs: 60_000 }));
  await world.run(61_000);
  await expect(kept()).rejects.toMatchObject({ code: "lease.ended" });
  expect(leaseOf(world, ID)?.expires).toBe(asked.lease.expires);
  const other = { ...wanted, labels: ["large"] };
  await world.settle(askForNodesOnce(client(world), "ba9876543210", other));
  await world.settle(releaseLease(client(world), "ba9876543210"));
  await expect(world.settle(keepLease(client(world), "ba9876543210"))).rejects.toMatchObject({
    code: "lease.ended",
  });
});

test("a lease without a heartbeat is extended from now, and not by a heartbeat", async () => {
  const world = await running();
  const { lease } = await world.settle(askForNodesOnce(client(world), ID, { ...wanted, forMs: 60_000 }));
  await granted(world);
  expect(await world.settle(keepLease(client(world), ID))).toMatchObject({ expires: lease.expires });
  await world.run(50_000);
  await world.settle(keepLease(client(world), ID, { forMs: 60_000 }));
  await world.run(55_000);
  expect(leaseOf(world, ID)?.state).toBe("granted");
  await world.run(10_000);
  expect(leaseOf(world, ID)).toBeUndefined();
});

test("the verdict at the return of nodes is in the journal", async () => {
  const world = await running();
  await world.settle(askForNodesOnce(client(world), ID, wanted));
  await granted(world);
  await world.settle(releaseLease(client(world), ID, { verdict: "infra-failure" }));
  const ended = () => world.members[0]!.journal.events.filter(({ event }) => event === "lease.ended");
  await world.until("it ended", () => ended().length > 0);
  expect(ended()).toMatchObject([{ facts: { lease: ID, why: "released", verdict: "infra-failure" } }]);
});
