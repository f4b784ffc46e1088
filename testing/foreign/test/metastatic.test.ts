import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireZooKeeper } from "../../zookeeper/index.ts";
import type { Agent, Fields } from "../agent.ts";
import { type ForeignSite, type StoreName, startForeignSite } from "../site.ts";

const STORES: readonly StoreName[] = ["zookeeper", "embedded"];
const OWNER = "NodePool:metastatic:slicer";
const NODE = (id: unknown) => `/nodepool/nodes/${id}`;
const CONTENDER = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa__lock__";

const CONFIG = `
labels: [{name: chunk}, {name: slice}]
providers:
  - name: metal
    driver: fake
    cloud: metal
    cloud-images: [{name: debian, username: zuul}]
    pools: [{name: main, labels: [{name: chunk, cloud-image: debian, min-ram: 1024}]}]
  - name: slicer
    driver: metastatic
    pools: [{name: main, labels: [{name: slice, backing-label: chunk, max-parallel-jobs: 3, grace-time: 2}]}]
`;

// Numbers in titles are those of docs/contract/checks.md, "Metastatic".
describe.skipIf(requireZooKeeper()).each(STORES)("slots, by kazoo, on %s", (store) => {
  let site: ForeignSite;
  let zuul: Agent;

  beforeAll(async () => {
    site = await startForeignSite(store, CONFIG);
    zuul = site.agent();
  });
  afterAll(() => site?.close());

  async function slice(): Promise<{ request: string; id: string; node: Fields; backing: string }> {
    const request = await zuul.request(["slice"]);
    const [id] = (await zuul.requestIs(request, "fulfilled")).nodes as string[];
    const node = await zuul.record(NODE(id));
    return { request, id: id!, node, backing: (node.driver_data as Fields).backing_node as string };
  }

  /** As Zuul's executor: lock, in-use, request gone, used, unlock. */
  async function use({ request, id }: { request: string; id: string }): Promise<void> {
    await zuul.lock(`${NODE(id)}/lock`);
    await zuul.delete(`/nodepool/requests/${request}`);
    await zuul.change(NODE(id), { state: "in-use" });
    await zuul.change(NODE(id), { state: "used" });
    await zuul.unlock(`${NODE(id)}/lock`).catch(() => null);
    await zuul.gone(NODE(id));
  }

  test("16 to 18, 21: a durable lock that kazoo respects, two slots of one node, and its end", async () => {
    const first = await slice();
    const second = await slice();
    expect(second.backing).toBe(first.backing);
    expect([first.node.slot, second.node.slot]).toEqual([0, 1]);
    const lock = `${NODE(first.backing)}/lock`;
    const [contender] = await zuul.children(lock);
    expect(await zuul.text(`${lock}/${contender}`)).toMatchObject({ data: OWNER, owner: 0 });
    expect(await zuul.lock(lock, false)).toBe("busy");
    const backing = await zuul.record(NODE(first.backing));
    expect(backing).toMatchObject({ state: "in-use", requestor: OWNER });
    expect(JSON.parse(backing.user_data as string)).toMatchObject({ owner: OWNER, label: "slice", slots: 3 });
    const ours = async () =>
      (await zuul.children("/nodepool/requests")).filter((id) => id.startsWith("100-"));
    await expect.poll(ours).toEqual([]);
    await use(first);
    await use(second);
    await zuul.gone(NODE(first.backing));
  });

  test("what a Python launcher left is taken over: the next node gets the slot that is free", async () => {
    const backing = "0000009000";
    // The lock first: an unlocked node in use has lost its user.
    await zuul.create(`${NODE(backing)}/lock/${CONTENDER}`, OWNER, false, true);
    const now = Date.now() / 1000;
    await zuul.store(NODE(backing), {
      state: "in-use",
      state_time: now,
      provider: "metal",
      pool: "main",
      type: ["chunk"],
      interface_ip: "fake",
      username: "zuul",
      connection_port: 22,
      connection_type: "ssh",
      host_keys: ["ssh-rsa FAKEKEY"],
      allocated_to: "100-0000000001",
      user_data: JSON.stringify({ owner: OWNER, label: "slice", slots: 3, failed: false, launched: now }),
    });
    await zuul.create(NODE("0000009001"), {
      state: "hold",
      state_time: now,
      provider: "slicer",
      pool: "main",
      type: ["slice"],
      external_id: "0000009001",
      slot: 0,
      host_keys: [],
      driver_data: { metadata: {}, backing_node: backing, slot: 0, node: "0000009001" },
    });
    await expect.poll(() => zuul.exists(`/nodeyard/slots/${backing}/0`)).toBe(true);
    const next = await slice();
    expect(next.node.driver_data).toMatchObject({ backing_node: backing, slot: 1 });
    await use(next);
    expect(await zuul.children(`/nodeyard/slots/${backing}`)).toEqual(["0"]);
  });

  test("a Python launcher that registers for the provider ends our service of it, until it leaves", async () => {
    const pools = async () => {
      const names = await zuul.children("/nodepool/components/pool");
      const records = await Promise.all(
        names.map((name) => zuul.record(`/nodepool/components/pool/${name}`)),
      );
      return records
        .filter(({ provider_name }) => provider_name === "slicer")
        .map(({ hostname }) => hostname);
    };
    const python = await zuul.create(
      "/nodepool/components/pool/python",
      {
        kind: "pool",
        hostname: "python",
        state: "running",
        model_api: 0,
        id: "python-PoolWorker.slicer-main-0",
        name: "main",
        provider_name: "slicer",
        supported_labels: ["slice"],
        priority: 100,
        paused: false,
      },
      true,
      true,
    );
    await expect.poll(pools).toEqual(["python"]);
    await zuul.delete(python);
    await expect.poll(async () => (await pools()).length).toBe(1);
    const { backing } = await slice();
    expect(await zuul.exists(`/nodeyard/slots/${backing}`)).toBe(true);
  });
});
