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
});
