import { INSTANT } from "@nodeyard/driver-fake";
import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { staticProvider } from "../rules/world.ts";
import { config, Lab, metal, OWNER } from "./lab.ts";

// Numbers in titles are those of docs/contract/checks.md, "Metastatic".

describe("slots of backing nodes", () => {
  test("16, 17, 19: one backing request, a durable lock, and the records that Nodepool writes", async () => {
    const lab = new Lab();
    await lab.start("a", config({}, { "node-attributes": { rack: "slot", team: "x" } }));
    const requests = new Set<string>();
    const asked = await lab.slice({ tenant_name: "t" });
    const fulfilled = await lab.until("it is fulfilled", () => {
      for (const id of lab.children(paths.requests)) if (id !== asked) requests.add(id);
      return lab.request(asked)?.state === "fulfilled" ? lab.request(asked) : undefined;
    });
    expect([...requests]).toHaveLength(1);
    expect([...requests][0]).toMatch(/^100-\d{10}$/);
    await lab.until("the backing request is gone", () => lab.children(paths.requests).length === 1);

    const [backing] = lab.backings();
    expect(lab.backings()).toHaveLength(1);
    expect(backing).toMatchObject({
      state: "in-use",
      provider: "metal",
      tenant_name: null,
      requestor: OWNER,
    });
    expect(lab.lockData(backing!.id)).toEqual([OWNER]);
    const [contender] = lab.children(paths.nodeLock(backing!.id));
    expect(lab.cluster.znodes.stat(`${paths.nodeLock(backing!.id)}/${contender}`)?.ephemeralOwner).toBe(0n);
    expect(lab.userData(backing!.id)).toEqual({
      owner: OWNER,
      label: "slice",
      slots: 2,
      failed: false,
      launched: expect.any(Number),
    });

    const [id] = fulfilled.nodes as string[];
    const node = lab.node(id!)!;
    expect(node.driver_data).toEqual({
      metadata: { nodepool_node_id: id, nodepool_pool_name: "main", nodepool_provider_name: "slicer" },
      backing_node: backing!.id,
      slot: 0,
      node: id,
    });
    expect(node).toMatchObject({
      state: "ready",
      external_id: id,
      slot: 0,
      tenant_name: "t",
      image_id: "unused",
      resources: { cores: 0, instances: 1, ram: 0 },
      attributes: { site: "a", rack: "slot", team: "x" },
    });
    for (const field of ["cloud", "region", "az", "host_keys", "username", "connection_port", "interface_ip"])
      expect(node[field], field).toEqual(backing![field]);
    expect(node.hostname).toBeNull();
    lab.check();
  });

  test("18: the lowest free slot of the oldest backing node", async () => {
    const lab = new Lab();
    await lab.start("a", config({ "grace-time": 60 }));
    const first = await lab.get();
    const second = await lab.get();
    const third = await lab.get();
    const { backing } = lab.place(first);
    expect([first, second].map((node) => lab.place(node))).toEqual([
      { backing, slot: 0 },
      { backing, slot: 1 },
    ]);
    expect(lab.place(third)).toMatchObject({ slot: 0 });
    expect(lab.place(third).backing).not.toBe(backing);
    await lab.giveBack(second);
    expect(lab.place(await lab.get())).toEqual({ backing, slot: 1 });
    lab.check();
  });

  test("20: requests that come while the backing node is being made share it", async () => {
    const lab = new Lab({
      latency: { ...INSTANT.latency, boot: { minMs: 3000, maxMs: 3000 } },
    });
    await lab.start("a", config());
    const ids = [await lab.slice(), await lab.slice()];
    for (const id of ids) await lab.fulfilled(id);
    expect(lab.backings()).toHaveLength(1);
    lab.check();
  });

  test("21: an empty backing node goes after grace-time, and not before", async () => {
    const lab = new Lab();
    await lab.start("a", config({ "grace-time": 20 }));
    const node = await lab.get();
    const { backing } = lab.place(node);
    await lab.giveBack(node);
    await lab.run(15_000);
    expect(lab.node(backing)?.state).toBe("in-use");
    await lab.gone(backing, 10_000);
    expect(lab.cloud.inspect()).toHaveLength(0);
    expect(lab.children("/nodeyard/slots")).toEqual([]);
  });

  test("22: a restart keeps slots and lock", async () => {
    const lab = new Lab();
    const before = await lab.start("a", config({ "grace-time": 60 }));
    const first = await lab.get();
    const { backing } = lab.place(first);
    const lock = lab.children(paths.nodeLock(backing));
    await lab.settle(before.launcher.close());
    await lab.settle(before.tree.close());
    await lab.start("b", config({ "grace-time": 60 }));
    expect(lab.place(await lab.get())).toEqual({ backing, slot: 1 });
    expect(lab.children(paths.nodeLock(backing))).toEqual(lock);
    lab.check();
  });

  test("23: a backing node of a label that is no longer configured goes at once when empty", async () => {
    const lab = new Lab();
    await lab.start("a", config({ "grace-time": 3600 }));
    const node = await lab.get();
    const { backing } = lab.place(node);
    const user_data = JSON.stringify({ ...lab.userData(backing), label: "other" });
    await lab.put(paths.node(backing), { ...lab.node(backing), user_data });
    await lab.giveBack(node);
    await lab.gone(backing, 5_000);
  });

  test("24: min-retention-time holds it longer than grace-time", async () => {
    const lab = new Lab();
    await lab.start("a", config({ "min-retention-time": 300 }));
    const node = await lab.get();
    const { backing } = lab.place(node);
    await lab.giveBack(node);
    await lab.run(280_000);
    expect(lab.node(backing)?.state).toBe("in-use");
    await lab.gone(backing, 30_000);
  });

  test("25: one that is older than max-age takes no more, and goes when it is empty", async () => {
    const lab = new Lab();
    await lab.start("a", config({ "max-age": 100, "grace-time": 60 }));
    const first = await lab.get();
    const { backing } = lab.place(first);
    await lab.run(101_000);
    const second = await lab.get();
    expect(lab.place(second).backing).not.toBe(backing);
    await lab.giveBack(first);
    await lab.gone(backing, 5_000);
    lab.check();
  });

  test.each([
    ["an empty one", { "min-retention-time": 300 }, 320_000],
    ["an old one", { "max-age": 300, "grace-time": 3_600 }, 320_000],
  ])("the clock of all is put back by two days: %s goes as if nothing had happened", async (_, label, ms) => {
    const lab = new Lab();
    await lab.start("a", config(label));
    const node = await lab.get();
    const { backing } = lab.place(node);
    lab.clock.jump(-172_800_000);
    await lab.giveBack(node);
    await lab.gone(backing, ms);
  });

  test("28: a label without a pool: the request fails after its attempts, and leaves no request behind", async () => {
    const lab = new Lab();
    await lab.start("a", config({}, {}, []));
    const id = await lab.slice();
    await lab.until("it has failed", () => lab.request(id)?.state === "failed");
    await lab.run(3_000);
    expect(lab.children(paths.requests)).toEqual([id]);
    await lab.until("the node is gone", () => lab.ends().length === 0);
  });

  test("29: max-servers of the pool counts slots", async () => {
    const lab = new Lab();
    await lab.start("a", config({}, { "max-servers": 1 }));
    await lab.get();
    const waiting = await lab.slice();
    await lab.until("it waits", () => lab.members[0]?.launcher.verdict(waiting)?.code === "capacity.pool");
    await lab.run(5_000);
    expect(lab.ends()).toHaveLength(1);
  });

  test("31: only the first contender of a backing node goes with its release", async () => {
    const lab = new Lab();
    await lab.start("a", config());
    const node = await lab.get();
    const { backing } = lab.place(node);
    const queued = await lab.contend(paths.nodeLock(backing));
    await lab.giveBack(node);
    await lab.until("it is given back", () => lab.node(backing)?.state === "used");
    expect(lab.children(paths.nodeLock(backing))).toEqual([queued.slice(queued.lastIndexOf("/") + 1)]);
  });

  test("a nodeset of slots and other nodes of two providers is not mixed: slots come whole", async () => {
    const lab = new Lab();
    await lab.start("a", config({}, {}, [metal({ "max-servers": 3 })]));
    const request = await lab.fulfilled(
      await lab.slice({ node_types: ["slice", "slice", "slice", "slice", "slice"] }),
    );
    expect(request.nodes).toHaveLength(5);
    expect(lab.backings()).toHaveLength(3);
    lab.check();
  });
});

test("a host of the static driver may carry slots; given back it is registered anew", async () => {
  const lab = new Lab();
  const hosts = [
    { name: "10.0.0.1", labels: ["large"], "host-key-checking": false, "host-key": "ssh-ed25519 A" },
  ];
  await lab.start("a", config({ "max-parallel-jobs": 4 }, {}, [staticProvider(hosts)]));
  const [first, second] = [await lab.get(), await lab.get()];
  const { backing } = lab.place(first);
  expect(lab.place(second)).toEqual({ backing, slot: 1 });
  expect(first).toMatchObject({ interface_ip: "10.0.0.1", host_keys: ["ssh-ed25519 A"], username: "zuul" });
  expect(first.hostname).toBeNull();
  await lab.giveBack(first);
  await lab.giveBack(second);
  await lab.gone(backing);
  const host = await lab.until("the host is registered", () => lab.backings()[0]);
  expect(host).toMatchObject({ state: "ready", allocated_to: null });
  expect(lab.place(await lab.get()).backing).toBe(host.id);
});
