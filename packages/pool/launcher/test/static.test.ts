import { setTimeout as pause } from "node:timers/promises";
import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { launcherConfig, startRig, staticProvider, until, useNode } from "./rig.ts";
import { before, touches } from "./rules/before-write.ts";
import { World } from "./rules/world.ts";

const board = {
  name: "127.0.0.1",
  labels: ["small", "large"],
  "host-key-checking": false,
  "host-key": "ssh-ed25519 AAAA",
  "max-parallel-jobs": 2,
};

async function registered(rig: Awaited<ReturnType<typeof startRig>>, count: number) {
  return until(`${count} slots are registered`, async () => {
    const nodes = (await rig.nodes()).filter((node) => node.state === "ready");
    return nodes.length === count ? nodes : undefined;
  });
}

describe("static hosts", () => {
  test("each slot of a host is a ready record with all its labels", async () => {
    await using rig = await startRig(launcherConfig([staticProvider([board])]));
    const nodes = await registered(rig, 2);
    expect(nodes.map((node) => node.slot).sort()).toEqual([0, 1]);
    expect(nodes[0]).toMatchObject({
      launcher: "static driver",
      type: ["small", "large"],
      hostname: "127.0.0.1",
      interfaceIp: "127.0.0.1",
      externalId: "127.0.0.1",
      hostKeys: ["ssh-ed25519 AAAA"],
      allocatedTo: null,
      connectionPort: 22,
    });
  });

  test("served, used, registered again under a new id in the same slot; requests wait for a free slot in order", async () => {
    await using rig = await startRig(
      launcherConfig([staticProvider([{ ...board, "max-parallel-jobs": 1 }])]),
    );
    const [before] = await registered(rig, 1);
    const first = await rig.ask({});
    const second = await rig.ask({ node_types: ["large"] });
    await until("the first is fulfilled", async () => (await rig.request(first))?.state === "fulfilled");
    expect((await rig.request(second))?.state).toBe("requested");
    expect(rig.launcher.verdict(second)).toMatchObject({ code: "nodes.none-free" });
    await rig.tree.delete(paths.request(first));
    await useNode(rig.tree, before!.id);
    const request = await until("the second is fulfilled", async () => {
      const record = await rig.request(second);
      return record?.state === "fulfilled" ? record : undefined;
    });
    expect(request.nodes[0]).not.toBe(before!.id);
    expect((await rig.node(request.nodes[0]!))?.slot).toBe(0);
  });

  test("more than there ever are is declined; two launchers register each slot once", async () => {
    await using rig = await startRig(launcherConfig([staticProvider([board])]));
    const other = await rig.another();
    await registered(rig, 2);
    const id = await rig.ask({ node_types: ["small", "small", "small"] });
    await until("it failed", async () => (await rig.request(id))?.state === "failed");
    expect(await registered(rig, 2)).toHaveLength(2);
    await other.close(100);
  });

  test("a host that leaves the configuration goes when it is free; one in use stays until its user is done", async () => {
    const two = [board, { ...board, name: "localhost", "max-parallel-jobs": 1 }];
    await using rig = await startRig(launcherConfig([staticProvider(two)]));
    await registered(rig, 3);
    const busy = (await rig.nodes()).find((node) => node.hostname === "127.0.0.1")!;
    const lock = await rig.tree
      .create(`${paths.nodeLock(busy.id)}/x__lock__`, undefined, { ephemeral: true, sequential: true })
      .catch(async () => {
        await rig.tree.create(paths.nodeLock(busy.id));
        return rig.tree.create(`${paths.nodeLock(busy.id)}/x__lock__`, undefined, {
          ephemeral: true,
          sequential: true,
        });
      });
    await rig.launcher.reconfigure(launcherConfig([staticProvider([two[1]!])]));
    await until(
      "only the busy one and the other host are left",
      async () => (await rig.nodes()).length === 2,
    );
    expect((await rig.node(busy.id))?.state).toBe("ready");
    // The record that went caused a comparison, which must not be the one that finds the other free.
    await pause(100);
    await rig.tree.delete(lock.path);
    await until("the busy one goes once it is free", async () => (await rig.node(busy.id)) === undefined);
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
