import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireZooKeeper } from "../../zookeeper/index.ts";
import type { Agent } from "../agent.ts";
import { type ForeignSite, type StoreName, startForeignSite } from "../site.ts";

const STORES: readonly StoreName[] = ["zookeeper", "embedded"];
/** The greatest data that a server takes with its default limit (0xfffff), less room for path and headers. */
const GREATEST = 1_046_000;

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
});
