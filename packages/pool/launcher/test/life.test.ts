import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { fakeProvider, launcherConfig, startRig, until, useNode } from "./rig.ts";

const fulfilled = (rig: Awaited<ReturnType<typeof startRig>>, id: string) =>
  until(`request ${id} is fulfilled`, async () => {
    const record = await rig.request(id);
    return record?.state === "fulfilled" ? record : undefined;
  });

describe("the life of a request", () => {
  test("requested, fulfilled with ready, unlocked nodes of the right labels, used, gone", async () => {
    await using rig = await startRig(launcherConfig([fakeProvider()]));
    const id = await rig.ask({ node_types: ["small", "large", "small"], tenant_name: "t1" });
    const request = await fulfilled(rig, id);
    expect(request.nodes).toHaveLength(3);
    expect(request.requestorData).toEqual({ a: 1 });
    expect(request.declinedBy).toEqual([]);
    const nodes = await Promise.all(request.nodes.map((node) => rig.node(node)));
    expect(nodes.map((node) => node?.type)).toEqual([["small"], ["large"], ["small"]]);
    for (const node of nodes) {
      expect(node).toMatchObject({
        state: "ready",
        allocatedTo: id,
        tenantName: "t1",
        requestor: "test",
        provider: "cloud",
        pool: "main",
        username: "tester",
      });
      expect(node?.externalId).not.toBeNull();
      expect(node?.hostKeys.length).toBeGreaterThan(0);
      expect(await rig.contenders(node!.id)).toEqual([]);
    }
    expect(rig.cloud.inspect()).toHaveLength(3);
    await rig.tree.delete(paths.request(id));
    for (const node of request.nodes) await useNode(rig.tree, node);
    await until("all nodes are gone", async () => (await rig.nodes()).length === 0);
    expect(rig.cloud.inspect()).toHaveLength(0);
    expect(rig.counters.value("launcher.unexpected")).toBe(0);
  });

  test("a request that vanishes leaves its nodes ready and free, and the next one takes them (checks 24, 25)", async () => {
    await using rig = await startRig(launcherConfig([fakeProvider()]));
    const first = await rig.ask({});
    const { nodes } = await fulfilled(rig, first);
    await rig.tree.delete(paths.request(first));
    await until("the node is free", async () =>
      (await rig.node(nodes[0]!))?.allocatedTo === null ? true : undefined,
    );
    const second = await fulfilled(rig, await rig.ask({}));
    expect(second.nodes).toEqual(nodes);
    expect(rig.cloud.inspect()).toHaveLength(1);
  });

  test("an unknown label fails with every pool's id in declined_by (check 22)", async () => {
    await using rig = await startRig(launcherConfig([fakeProvider(), fakeProvider("other")]));
    const id = await rig.ask({ node_types: ["nothing"] });
    const request = await until("it failed", async () => {
      const record = await rig.request(id);
      return record?.state === "failed" ? record : undefined;
    });
    expect(new Set(request.declinedBy).size).toBe(2);
  });

  test("launch-retries bounds the attempts, then the pool declines; nothing is left behind (check 18)", async () => {
    const knobs = {
      faults: {
        createFails: 2,
        createFailsWithExternalId: 0,
        neverActive: 0,
        endsInError: 0,
        deleteFails: 0,
        refused: 0,
        deleteLeavesRecord: 0,
      },
    };
    await using rig = await startRig(launcherConfig([fakeProvider("cloud", { "launch-retries": 2 })]), {
      knobs,
    });
    const id = await rig.ask({});
    await until("it failed", async () => ((await rig.request(id))?.state === "failed" ? true : undefined));
    await until("the failed node is gone", async () => (await rig.nodes()).length === 0);
    expect(rig.cloud.inspect()).toEqual([]);
  });

  test("at capacity requests wait in order and go on as nodes go (check 8)", async () => {
    await using rig = await startRig(launcherConfig([fakeProvider("cloud", {}, { "max-servers": 2 })]));
    const first = await fulfilled(rig, await rig.ask({ node_types: ["small", "small"] }));
    const waiting = await rig.ask({ node_types: ["small"] });
    await until("the pool says that it is paused", () =>
      [...rig.launcher.view.components.values()].some((component) => component.record.paused),
    );
    expect((await rig.request(waiting))?.state).toBe("requested");
    expect(rig.launcher.verdict(waiting)).toMatchObject({
      code: "capacity.pool",
      facts: { limit: 2, used: 2 },
    });
    await rig.tree.delete(paths.request(first.id));
    await useNode(rig.tree, first.nodes[0]!);
    const second = await fulfilled(rig, waiting);
    expect(second.nodes).toHaveLength(1);
    expect(rig.cloud.inspect().length).toBeLessThanOrEqual(2);
  });

  test("what others use of the cloud's quota is not ours to give", async () => {
    const config = launcherConfig([fakeProvider()]);
    await using rig = await startRig(config, {
      knobs: { quota: { instances: 3 } },
      beforeCloud: async (cloud) => {
        const stranger = {
          tag: null,
          az: null,
          resources: { instances: 1 },
          networks: [],
          imageProperties: {},
        };
        for (const name of ["one", "two"])
          await cloud.create({ ...stranger, name }, new AbortController().signal);
      },
    });
    const first = await fulfilled(rig, await rig.ask({}));
    const second = await rig.ask({});
    await until("it waits for the quota", () => rig.launcher.verdict(second)?.code === "capacity.provider");
    expect(rig.launcher.verdict(second)?.facts).toMatchObject({ limit: 1, used: 1 });
    await rig.tree.delete(paths.request(first.id));
    await useNode(rig.tree, first.nodes[0]!);
    await fulfilled(rig, second);
    expect(rig.cloud.inspect()).toHaveLength(3);
  });

  test("min-ready: asked for with priority 900, freed when ready, replaced when used (check 29)", async () => {
    const labels = new Map([
      ["small", { name: "small", minReady: 2, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
    ]);
    await using rig = await startRig(launcherConfig([fakeProvider()], { labels }));
    const free = () =>
      rig
        .nodes()
        .then((nodes) => nodes.filter((node) => node.state === "ready" && node.allocatedTo === null));
    await until("two idle nodes", async () => (await free()).length === 2);
    await until("its requests are gone", async () => (await rig.tree.children(paths.requests)).length === 0);
    const taken = await fulfilled(rig, await rig.ask({ node_types: ["small", "small"] }));
    await rig.tree.delete(paths.request(taken.id));
    for (const node of taken.nodes) await useNode(rig.tree, node);
    await until("two others", async () => {
      const nodes = await free();
      return nodes.length === 2 && nodes.every((node) => !taken.nodes.includes(node.id));
    });
  });

  test("a node in-use whose user vanished is deleted; one that is held is kept", async () => {
    await using rig = await startRig(launcherConfig([fakeProvider()]));
    const request = await fulfilled(rig, await rig.ask({ node_types: ["small", "small"] }));
    const [held, lost] = request.nodes as [string, string];
    const record = JSON.parse(Buffer.from((await rig.tree.get(paths.node(held))).data).toString());
    await rig.tree.set(paths.node(held), Buffer.from(JSON.stringify({ ...record, state: "hold" })));
    await useNode(rig.tree, lost, "in-use");
    await until("the lost one is gone", async () => (await rig.node(lost)) === undefined);
    expect((await rig.node(held))?.state).toBe("hold");
  });
});
