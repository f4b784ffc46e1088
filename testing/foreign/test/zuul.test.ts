import { hostname } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireZooKeeper } from "../../zookeeper/index.ts";
import { type Agent, SHORT_SESSION_S } from "../agent.ts";
import { type ForeignSite, type StoreName, startForeignSite } from "../site.ts";

const STORES: readonly StoreName[] = ["zookeeper", "embedded"];
const NODE = (id: unknown) => `/nodepool/nodes/${id}`;
const REQUEST = (id: string) => `/nodepool/requests/${id}`;
/** Every key of docs/contract/records.md, "Node" that Zuul or a Python launcher expects. */
const NODE_KEYS = `state state_time provider pool type launcher allocated_to tenant_name requestor created_time cloud region az host_id
  external_id hostname public_ipv4 private_ipv4 public_ipv6 interface_ip connection_type connection_port ssh_port username
  host_keys image_id python_path shell_type hold_expiration hold_job comment user_data driver_data resources attributes slot`;

// Numbers in titles are those of docs/contract/checks.md, "Tree and Zuul".
describe.skipIf(requireZooKeeper()).each(STORES)("Zuul, by kazoo, on %s", (store) => {
  let site: ForeignSite;
  let zuul: Agent;

  beforeAll(async () => {
    site = await startForeignSite(store);
    zuul = site.agent();
  });
  afterAll(() => site?.close());

  test("11, 12: a fresh tree has components, and ours are named after the host", async () => {
    // Nodes that the launcher's own min-ready has made by now are ignored here.
    expect(await zuul.exists("/nodepool/images")).toBe(false);
    expect((await zuul.children("/nodepool/components")).sort()).toEqual(["builder", "launcher", "pool"]);
    const pools = await zuul.children("/nodepool/components/pool");
    expect(pools).toHaveLength(3);
    for (const name of pools) {
      expect(name.slice(0, -10)).toBe(hostname());
      expect(name).toMatch(/\d{10}$/);
      const { data, owner } = await zuul.text(`/nodepool/components/pool/${name}`);
      expect(owner).not.toBe(0);
      const keys = Object.keys(JSON.parse(data) as object);
      expect(keys).toEqual([...keys].sort());
    }
  });

  test("2: min-ready asks like Nodepool's own requests", async () => {
    const created = () =>
      site
        .log()
        .flatMap(({ ops }) => ops)
        .find((op) => op.op === "create" && op.path.startsWith("/nodepool/requests/900-"));
    await expect.poll(created).toBeDefined();
    const { data } = created() as { data: Uint8Array };
    expect(JSON.parse(Buffer.from(data).toString())).toMatchObject({
      node_types: ["warm"],
      requestor: "NodePool:min-ready",
      reuse: false,
      created_time: null,
      event_id: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
  });

  test("1, 3, 4, 9, 23: a request from its creation to the deletion of its nodes", async () => {
    const before = await zuul.request(["nowhere-yet"], {}, "900");
    const id = await zuul.request(["small", "large", "small"]);
    expect(Number(id.slice(4))).toBe(Number(before.slice(4)) + 1);
    await zuul.delete(REQUEST(before));
    const asked = await zuul.record(REQUEST(id));
    const done = await zuul.requestIs(id, "fulfilled");
    expect(done.requestor_data).toEqual(asked.requestor_data);
    for (const key of ["state_time", "event_id", "requestor", "provider", "tenant_name", "relative_priority"])
      expect(done).toHaveProperty(key);
    const nodes = done.nodes as string[];
    expect(nodes).toHaveLength(3);
    for (const [index, node] of nodes.entries()) {
      expect(node).toMatch(/^\d{10}$/);
      const record = await zuul.record(NODE(node));
      expect(Object.keys(record)).toEqual(expect.arrayContaining(NODE_KEYS.split(/\s+/)));
      expect(record).toMatchObject({
        state: "ready",
        type: [["small", "large", "small"][index]],
        allocated_to: id,
        tenant_name: "t1",
        requestor: "zuul-system",
        connection_port: 22,
        ssh_port: 22,
      });
      expect(await zuul.children(`${NODE(node)}/lock`)).toEqual([]);
      expect(await zuul.acl(NODE(node))).toEqual([[31, "world", "anyone"]]);
    }
    await live(zuul, id, nodes);
    for (const node of nodes) await zuul.gone(NODE(node));
    const history = site.log().filter(({ ops }) => ops.some(({ path }) => path.startsWith(NODE(nodes[0]))));
    const contenders = history.flatMap(({ ops }) =>
      ops.filter((op) => op.op === "create" && op.path.startsWith(`${NODE(nodes[0])}/lock/`)),
    );
    for (const { path } of contenders) expect(path).toMatch(/\/lock\/[0-9a-f]{32}__lock__\d{10}$/);
    const last = history.at(-1)!.ops.filter(({ path }) => path.startsWith(NODE(nodes[0])));
    expect(last.map(({ op }) => op)).toEqual(["set", "delete", "delete", "delete"]);
    expect(Buffer.from((last[0] as { data: Uint8Array }).data).toString()).toMatch(/"state": ?"deleted"/);
    expect(last.slice(1).map(({ path }) => path.split("/").length)).toEqual([6, 5, 4]);
  });

  test("24: a fulfilled request is deleted without a lock on its nodes: they are free again", async () => {
    const id = await zuul.request(["large"]);
    const [node] = (await zuul.requestIs(id, "fulfilled")).nodes as string[];
    await zuul.delete(REQUEST(id));
    const free = await zuul.recordBecomes(NODE(node), (record) => record.allocated_to === null);
    expect(free.state).toBe("ready");
  });

  test("25, 27: while a node launches the request is locked; deleted then, the node ends ready and free", async () => {
    const id = await zuul.request(["slow"]);
    await zuul.requestIs(id, "pending");
    expect(await zuul.lock(`/nodepool/requests-lock/${id}`, false)).toBe("busy");
    const node = await allocatedNode(zuul, id);
    await zuul.delete(REQUEST(id));
    await zuul.recordBecomes(
      NODE(node),
      (record) => record.state === "ready" && record.allocated_to === null,
    );
  });

  test("18, 27: the order is priority, then relative priority, then age; a revised one moves", async () => {
    const holder = await zuul.request(["narrow"]);
    const [node] = (await zuul.requestIs(holder, "fulfilled")).nodes as string[];
    const waiting = [
      await zuul.request(["narrow"], { relative_priority: 0 }, "300"),
      await zuul.request(["narrow"], { relative_priority: 7 }, "100"),
      await zuul.request(["narrow"], { relative_priority: 3 }, "100"),
      await zuul.request(["narrow"], { relative_priority: 5 }, "099"),
      await zuul.request(["narrow"], { relative_priority: 9 }, "300"),
    ];
    const [last, second, first, zeroth, revised] = waiting as [string, string, string, string, string];
    expect(await zuul.lock(`/nodepool/requests-lock/${revised}`, true, 60)).toMatch(/__lock__/);
    const { data, version } = await zuul.text(REQUEST(revised));
    await zuul.store(REQUEST(revised), { ...JSON.parse(data), relative_priority: -1 }, version);
    await zuul.unlock(`/nodepool/requests-lock/${revised}`);
    let current: readonly [string, string] = [holder, node!];
    const order: string[] = [];
    for (const _ of waiting) {
      await live(zuul, current[0], [current[1]]);
      const next = await nextFulfilled(zuul, waiting, order);
      order.push(next);
      current = [next, ((await zuul.record(REQUEST(next))).nodes as string[])[0]!];
    }
    await live(zuul, current[0], [current[1]]);
    expect(order).toEqual([zeroth, first, second, revised, last]);
  });

  test("8: the session that uses a node dies: the node is deleted", async () => {
    const executor = site.agent(SHORT_SESSION_S);
    const id = await zuul.request(["small"]);
    const [node] = (await zuul.requestIs(id, "fulfilled")).nodes as string[];
    await executor.lock(`${NODE(node)}/lock`);
    await executor.delete(REQUEST(id));
    await executor.change(NODE(node), { state: "in-use" });
    await executor.kill();
    await zuul.gone(NODE(node));
  });

  test("39: a held node stays, unlocked; made used, it goes", async () => {
    const id = await zuul.request(["small"]);
    const [node] = (await zuul.requestIs(id, "fulfilled")).nodes as string[];
    await zuul.lock(`${NODE(node)}/lock`);
    await zuul.delete(REQUEST(id));
    await zuul.change(NODE(node), { state: "in-use" });
    await zuul.change(NODE(node), { state: "hold", hold_job: "t p j r", comment: "why", id: node });
    await zuul.unlock(`${NODE(node)}/lock`);
    const other = await zuul.request(["small"]);
    const [another] = (await zuul.requestIs(other, "fulfilled")).nodes as string[];
    expect(another).not.toBe(node);
    await live(zuul, other, [another!]);
    expect(await zuul.record(NODE(node))).toMatchObject({ state: "hold", comment: "why" });
    await zuul.change(NODE(node), { state: "used" });
    await zuul.gone(NODE(node));
  });
});

/** The executor's part (docs/contract/zuul.md, "Using nodes"). */
async function live(zuul: Agent, id: string, nodes: readonly string[]): Promise<void> {
  for (const node of nodes) {
    expect((await zuul.record(NODE(node))).allocated_to).toBe(id);
    expect(await zuul.lock(`${NODE(node)}/lock`, true, 30)).toMatch(/__lock__/);
  }
  await zuul.delete(REQUEST(id));
  for (const node of nodes)
    await zuul.change(NODE(node), { state: "in-use", user_data: { zuul_system: "zuul-system" }, id: node });
  for (const node of nodes) {
    await zuul.change(NODE(node), { state: "used" });
    await zuul.unlock(`${NODE(node)}/lock`);
  }
}

async function allocatedNode(zuul: Agent, request: string): Promise<string> {
  for (;;) {
    for (const id of await zuul.children("/nodepool/nodes"))
      if ((await zuul.record(NODE(id)).catch(() => ({ allocated_to: null }))).allocated_to === request)
        return id;
  }
}

async function nextFulfilled(zuul: Agent, ids: readonly string[], had: readonly string[]): Promise<string> {
  for (;;) {
    for (const id of ids)
      if (!had.includes(id) && (await zuul.record(REQUEST(id))).state === "fulfilled") return id;
  }
}
