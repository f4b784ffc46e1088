import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireZooKeeper } from "../../zookeeper/index.ts";
import type { Agent } from "../agent.ts";
import { type ForeignSite, type StoreName, startForeignSite } from "../site.ts";

const STORES: readonly StoreName[] = ["zookeeper", "embedded"];
/** The greatest data that a server takes with its default limit (0xfffff), less room for path and headers. */
const GREATEST = 1_046_000;

const ODD_REQUESTS: readonly (readonly [what: string, prefix: string, data: string])[] = [
  ["not JSON", "100-", "notjson"],
  ["nothing", "100-", ""],
  ["not an object", "100-", "[1, 2]"],
  ["an unknown state", "100-", '{"state": "bogus", "node_types": ["small"]}'],
  ["no state", "100-", '{"node_types": ["small"]}'],
  ["labels of a wrong type", "100-", '{"state": "requested", "node_types": 7}'],
  ["labels that are no texts", "100-", '{"state": "requested", "node_types": [1, null, {}]}'],
  [
    "fields of wrong types",
    "100-",
    '{"state": "requested", "node_types": ["nowhere"], "declined_by": "x", "relative_priority": "high", "reuse": 3, "created_time": [], "tenant_name": 5, "provider": {}}',
  ],
  [
    "numbers that are none",
    "100-",
    '{"state": "requested", "node_types": ["nowhere"], "relative_priority": NaN, "requestor_data": {"a": Infinity, "b": 12345678901234567890}}',
  ],
  ["a name without a dash", "nodash", '{"state": "requested", "node_types": ["small"]}'],
  ["a name with two dashes", "1-0-", '{"state": "requested", "node_types": ["small"]}'],
  ["a prefix that is not a number", "abc-", '{"state": "requested", "node_types": ["nowhere"]}'],
];
const ODD_NODES = [
  "notjson",
  "",
  '{"state": "bogus", "provider": "quick", "pool": "main", "type": ["small"]}',
  '{"state": 5}',
];

describe.skipIf(requireZooKeeper()).each(STORES)("what a foreign client may write, on %s", (store) => {
  let site: ForeignSite;
  let client: Agent;

  beforeAll(async () => {
    site = await startForeignSite(store);
    client = site.agent();
  });
  afterAll(() => site?.close());

  async function served(fields = {}): Promise<Record<string, unknown>> {
    const id = await client.request(["small"], fields);
    const done = await client.requestIs(id, "fulfilled");
    await client.delete(`/nodepool/requests/${id}`);
    return done;
  }

  test.each(ODD_REQUESTS)("a request with %s stops nothing else", async (_, prefix, data) => {
    await client.create(`/nodepool/requests/${prefix}`, data, false, true);
    await served();
  });

  test("a request of the greatest size stops nothing else", async () => {
    await client.fill("/nodepool/requests/100-", GREATEST);
    await served();
  });

  test("a request without any optional field is served", async () => {
    const path = await client.create(
      "/nodepool/requests/200-",
      { state: "requested", node_types: ["small"] },
      false,
      true,
    );
    const id = path.slice("/nodepool/requests/".length);
    const done = await client.requestIs(id, "fulfilled");
    for (const key of [
      "state",
      "state_time",
      "event_id",
      "requestor",
      "requestor_data",
      "node_types",
      "provider",
    ])
      expect(done).toHaveProperty(key);
    await client.delete(path);
  });

  test.each(ODD_NODES)("16, 17: a node that says %j stops nothing else", async (data) => {
    await client.create("/nodepool/nodes/", data, false, true);
    await served();
  });

  test("fields that we do not know survive our writes, digit by digit", async () => {
    const id = await client.request(["small"]);
    const before =
      '{"state": "requested", "node_types": ["small"], "requestor_data": {"n": 12345678901234567890, "i": Infinity}, "novel": 12345678901234567890.50, "__proto__": 1}';
    const path = await client.create("/nodepool/requests/200-", before, false, true);
    await client.requestIs(id, "fulfilled");
    let text = "";
    await expect
      .poll(async () => {
        text = (await client.text(path)).data;
        return text;
      })
      .toMatch(/"state": ?"fulfilled"/);
    expect(text).toMatch(/"n": ?12345678901234567890[,}]/);
    expect(text).toMatch(/"i": ?Infinity/);
    expect(text).toMatch(/"novel": ?12345678901234567890\.50[,}]/);
    expect(text).toMatch(/"__proto__": ?1[,}]/);
  });

  test("15: an old node record is read with the defaults of its time, used, and otherwise left as it was", async () => {
    const path = await client.create(
      "/nodepool/nodes/",
      {
        state: "ready",
        state_time: Date.now() / 1000,
        provider: "quick",
        pool: "main",
        type: "large",
        ssh_port: 2222,
        hold_expiration: "abc",
        foo: "bar",
      },
      false,
      true,
    );
    const id = await client.request(["large"]);
    const done = await client.requestIs(id, "fulfilled");
    expect(done.nodes).toEqual([path.slice(-10)]);
    expect(await client.record(path)).toMatchObject({
      allocated_to: id,
      ssh_port: 2222,
      // The old launcher drops what it does not know; ours leaves everything as it was that it does not change.
      foo: "bar",
      hold_expiration: "abc",
    });
    await client.delete(`/nodepool/requests/${id}`);
  });

  test("10: an empty path where a node was stops nothing and is not used", async () => {
    await client.create("/nodepool/nodes/0000009999/lock", "");
    await served();
    expect((await client.text("/nodepool/nodes/0000009999")).data).toBe("");
  });

  test("the launcher still lives, and warned of what it skipped", () => {
    expect(site.launcher.dead).toBe(false);
    expect(site.launcher.errors).toMatch(/"level":"warn"/);
  });
});
