import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { before, touches } from "./rules/before-write.ts";
import { launcherConfig, staticProvider, World } from "./rules/world.ts";

const board = {
  name: "127.0.0.1",
  labels: ["small", "large"],
  "host-key-checking": false,
  "host-key": "ssh-ed25519 AAAA",
  "max-parallel-jobs": 2,
};

/** Ready records of hosts, when there are so many. */
const registered = (world: World, count: number) =>
  world.until(`${count} slots are registered`, () => {
    const nodes = world.nodes().filter(({ state }) => state === "ready");
    return nodes.length === count && nodes;
  });

describe("static hosts", () => {
  test("each slot of a host is a ready record with all its labels", async () => {
    const world = new World();
    await world.start("a", launcherConfig([staticProvider([board])]));
    const nodes = await registered(world, 2);
    expect(nodes.map(({ slot }) => slot)).toEqual([0, 1]);
    expect(nodes[0]).toMatchObject({
      launcher: "static driver",
      type: ["small", "large"],
      hostname: "127.0.0.1",
      interface_ip: "127.0.0.1",
      external_id: "127.0.0.1",
      host_keys: ["ssh-ed25519 AAAA"],
      allocated_to: null,
      connection_port: 22,
    });
  });

  test("served, used, registered again under a new id in the same slot; requests wait for a free slot in order", async () => {
    const world = new World();
    const one = staticProvider([{ ...board, "max-parallel-jobs": 1 }]);
    const { launcher } = await world.start("a", launcherConfig([one]));
    const [before] = await registered(world, 1);
    const [first, second] = [await world.ask(), await world.ask({ node_types: ["large"] })];
    await world.fulfilled(first);
    expect(world.request(second)?.state).toBe("requested");
    expect(launcher.verdict(second)).toMatchObject({ code: "nodes.none-free" });
    await world.use(first);
    const [again] = (await world.fulfilled(second)).nodes as [string];
    expect(again).not.toBe(before!.id);
    expect(world.node(again)?.slot).toBe(0);
  });

  test("more than there ever are is declined; two launchers register each slot once", async () => {
    const world = new World();
    const config = launcherConfig([staticProvider([board])]);
    for (const name of ["a", "b"]) await world.start(name, config);
    await registered(world, 2);
    const id = await world.ask({ node_types: ["small", "small", "small"] });
    await world.until("it failed", () => world.request(id)?.state === "failed");
    await registered(world, 2);
  });

  test("a host that leaves the configuration goes when it is free; one in use stays until its user is done", async () => {
    const two = [board, { ...board, name: "localhost", "max-parallel-jobs": 1 }];
    const world = new World();
    const { launcher } = await world.start("a", launcherConfig([staticProvider(two)]));
    const busy = (await registered(world, 3)).find(({ hostname }) => hostname === "127.0.0.1")!.id;
    const lock = await world.contend(paths.nodeLock(busy));
    await world.settle(launcher.reconfigure(launcherConfig([staticProvider([two[1]!])])));
    await world.until("only the busy one and the other host are left", () => world.nodes().length === 2);
    await world.run(10_000);
    expect(world.node(busy)?.state).toBe("ready");
    await world.settle(world.other.delete(lock));
    await world.until("the busy one goes once it is free", () => world.node(busy) === undefined);
  });

  test("one that is given to a request as it leaves the configuration stays", async () => {
    const world = new World();
    const { launcher } = await world.start("a", launcherConfig([staticProvider([board])]));
    const [host] = await world.until("it is registered", () => world.nodes().length > 0 && world.nodes());
    const { id, ...record } = host!;
    const request = await world.ask({ state: "fulfilled", nodes: [id] });
    const given = { ...record, allocated_to: request };
    const isGiven = before(world, touches(paths.nodeLock(id)), () => {
      void world.other.set(paths.node(id), Buffer.from(JSON.stringify(given)));
    });
    await world.settle(
      launcher.reconfigure(launcherConfig([staticProvider([{ ...board, name: "localhost" }])])),
    );
    await world.until("it is given away", isGiven);
    await world.run(5_000);
    expect(world.node(id)).toEqual(given);
  });

  // Zuul locks the nodes that it is given without waiting, and fails the build when somebody has the lock.
  test("no launcher locks a host that was given to a request, although it leaves the configuration", async () => {
    const world = new World();
    const { launcher } = await world.start("a", launcherConfig([staticProvider([board])]));
    const id = await world.ask();
    const [given] = (await world.fulfilled(id)).nodes as [string];
    const written = world.cluster.log.length;
    const other = staticProvider([{ ...board, name: "localhost" }]);
    await world.settle(launcher.reconfigure(launcherConfig([other])));
    await world.run(150_000);
    expect(world.cluster.log.slice(written).filter(touches(paths.nodeLock(given)))).toEqual([]);
    await world.use(id);
    await world.until("it goes with its user", () => world.node(given) === undefined);
  });
});
