import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { ensure, fakeProvider, launcherConfig, startRig, until } from "./rig.ts";

describe("several launchers on one tree", () => {
  test("serve a crowd of requests together, no node given twice, the shared limit never exceeded", async () => {
    const config = launcherConfig([fakeProvider("cloud", {}, { "max-servers": 10 })]);
    await using rig = await startRig(config);
    await rig.another();
    const ids = await Promise.all(Array.from({ length: 40 }, () => rig.ask({})));
    const open = new Set(ids);
    const given = new Set<string>();
    await until("all are fulfilled", async () => {
      expect(rig.cloud.inspect().length).toBeLessThanOrEqual(10);
      for (const id of open) {
        const record = await rig.request(id);
        if (record?.state !== "fulfilled") continue;
        open.delete(id);
        for (const node of record.nodes) {
          expect(given.has(node)).toBe(false);
          given.add(node);
          // Its user is done at once: used while allocated, then the request goes.
          const found = await rig.tree.get(paths.node(node));
          const text = JSON.stringify({ ...JSON.parse(Buffer.from(found.data).toString()), state: "used" });
          await rig.tree.set(paths.node(node), Buffer.from(text));
        }
        await rig.tree.delete(paths.request(id));
      }
      return open.size === 0;
    });
    expect(given.size).toBe(40);
    expect(rig.counters.value("launcher.unexpected")).toBe(0);
  });

  test("what a crashed launcher left is put back, cleaned up and served by another", async () => {
    await using rig = await startRig(launcherConfig([fakeProvider()]), {
      before: async (tree) => {
        await ensure(tree, paths.requests);
        await ensure(tree, paths.nodes);
        await ensure(tree, `${paths.requestsLock}/100-0000000000`);
        const put = (path: string, value: object) => tree.create(path, Buffer.from(JSON.stringify(value)));
        await put(paths.request("100-0000000000"), {
          state: "pending",
          state_time: 1,
          node_types: ["small", "small"],
          declined_by: [],
          requestor: "t",
        });
        const base = {
          provider: "cloud",
          pool: "main",
          type: ["small"],
          allocated_to: "100-0000000000",
          state_time: 1,
        };
        await put(paths.node("0000000100"), { ...base, state: "ready", interface_ip: "1.2.3.4" });
        await put(paths.node("0000000101"), { ...base, state: "building" });
        await put(paths.node("0000000102"), { ...base, state: "init" });
      },
    });
    const request = await until("it is fulfilled", async () => {
      const record = await rig.request("100-0000000000");
      return record?.state === "fulfilled" ? record : undefined;
    });
    expect(request.nodes).toContain("0000000100");
    await until(
      "debris is gone",
      async () =>
        (await rig.node("0000000101")) === undefined && (await rig.node("0000000102")) === undefined,
    );
  });

  test("a graceful stop leaves nothing locked, and its pools leave the registry", async () => {
    await using rig = await startRig(launcherConfig([fakeProvider()]));
    await rig.ask({});
    await rig.launcher.close(5_000);
    expect(await rig.tree.children("/nodepool/components/pool")).toEqual([]);
    for (const node of await rig.nodes()) expect(await rig.contenders(node.id)).toEqual([]);
  });
});

describe("records that make no sense", () => {
  test("stop nothing else: missing fields, wrong types, names that do not parse, the largest data", async () => {
    await using rig = await startRig(launcherConfig([fakeProvider()]));
    const put = (name: string, text: string) =>
      rig.tree.create(`${paths.requests}/${name}`, Buffer.from(text));
    await ensure(rig.tree, paths.requests);
    await put("nodash", "{}");
    await put("a-b-c", '{"state": "requested", "node_types": ["small"]}');
    await put("100-0000000500", "not json");
    await put("100-0000000501", '{"state": "bogus", "node_types": ["small"]}');
    await put("100-0000000502", '{"state": "requested", "node_types": {"small": 1}}');
    await put("100-0000000503", '{"node_types": ["small"]}');
    await put("100-0000000504", "[]");
    await put("100-0000000505", "");
    await put(
      "100-0000000506",
      `{"state": "requested", "node_types": ["small"], "requestor_data": "${"x".repeat(1_000_000)}", "big": 12345678901234567890, "nan": NaN}`,
    );
    await ensure(rig.tree, paths.nodes);
    await rig.tree.create(paths.node("0000000900"), Buffer.from("nonsense"));
    await rig.tree.create(
      paths.node("0000000901"),
      Buffer.from('{"state": "ready", "provider": 7, "pool": ["x"], "type": "small"}'),
    );
    const fine = await rig.ask({});
    await until(
      "the request that is fine is fulfilled",
      async () => (await rig.request(fine))?.state === "fulfilled",
    );
    await until(
      "the large one is fulfilled too",
      async () => (await rig.request("100-0000000506"))?.state === "fulfilled",
    );
    const raw = Buffer.from((await rig.tree.get(paths.request("100-0000000506"))).data).toString();
    expect(raw).toContain('"big": 12345678901234567890');
    expect(raw).toMatch(/"nan":\s?NaN/);
    expect(rig.counters.value("view.records_skipped")).toBeGreaterThan(5);
    expect(rig.counters.value("launcher.unexpected")).toBe(0);
  });
});
