import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { fakeProvider, launcherConfig, staticProvider, World } from "./world.ts";

describe("rule 4: every request ends, or explain says what it waits for", () => {
  test("behind a blocked head, every request has a verdict that names its head", async () => {
    const world = new World();
    const { launcher } = await world.start(
      "a",
      launcherConfig([fakeProvider("cloud", {}, { "max-servers": 1 })]),
    );
    await world.fulfilled(await world.ask());
    const ids = [await world.ask(), await world.ask(), await world.ask()];
    await world.run(500);
    expect(launcher.verdict(ids[0]!)).toMatchObject({ code: "capacity.pool" });
    for (const id of ids.slice(1)) {
      expect(launcher.verdict(id)).toMatchObject({
        code: "queue.behind",
        facts: { pool: "cloud/main", head: ids[0] },
      });
      expect(launcher.verdict(id)!.since).toBeGreaterThan(0);
    }
  });

  test("a provider that serves nothing, and a request that others have to decide, are explained", async () => {
    const world = new World();
    await world.pythonPool("p", ["other"]);
    const inert = fakeProvider("idle", { "max-concurrency": 0 });
    const { launcher } = await world.start("a", launcherConfig([inert]));
    const [here, elsewhere] = [await world.ask(), await world.ask({ node_types: ["other"] })];
    await world.run(500);
    expect(launcher.verdict(here)).toMatchObject({ code: "provider.inert" });
    expect(launcher.verdict(elsewhere)?.code).toBeDefined();
    const { launcher: able } = await world.start("b", launcherConfig([fakeProvider("cloud")]));
    const unknown = await world.ask({ node_types: ["nobody-has-it"] });
    await world.until("ours declined", () => (world.request(unknown)?.declined_by as string[])?.length >= 1);
    await world.run(500);
    expect(able.verdict(unknown)).toMatchObject({ code: "declined.here" });
  });

  test("explain says which launcher works on a request", async () => {
    const world = new World();
    const id = await world.ask({ state: "pending" });
    await world.contend(paths.requestLock(id));
    const { launcher } = await world.start("a", launcherConfig([fakeProvider()]));
    await world.run(5_000);
    expect(launcher.verdict(id)).toBeDefined();
  });

  test("waiting for a host, for the tenant's limit and after a failure each has its code", async () => {
    const world = new World();
    const hosts = [{ name: "127.0.0.1", labels: ["small"], "host-key-checking": false }];
    const tenantLimits = new Map([["t1", { instances: 1 }]]);
    const { launcher } = await world.start(
      "a",
      launcherConfig(
        [
          staticProvider(hosts),
          fakeProvider(
            "cloud",
            {},
            { labels: [{ name: "large", "cloud-image": "image", "flavor-name": "f" }] },
          ),
        ],
        { tenantLimits },
      ),
    );
    await world.fulfilled(await world.ask());
    const second = await world.ask();
    await world.fulfilled(await world.ask({ node_types: ["large"], tenant_name: "t1" }));
    const third = await world.ask({ node_types: ["large"], tenant_name: "t1" });
    await world.run(500);
    expect(launcher.verdict(second)).toMatchObject({ code: "nodes.none-free" });
    expect(launcher.verdict(third)).toMatchObject({
      code: "capacity.tenant",
      facts: { tenant: "t1", limit: 1 },
    });
  });

  test("an invalid pool component decides nothing, and causes no loop of writes", async () => {
    const world = new World();
    await world.put("/nodepool/components/pool/odd0000000000", { kind: "pool", state: "running" });
    await world.start("a", launcherConfig([fakeProvider()]));
    const id = await world.ask({ node_types: ["nobody-has-it"] });
    await world.until("it failed", () => world.request(id)?.state === "failed", 5_000);
    const writes = world.cluster.log.filter((write) => write.ops.some((op) => op.path === paths.request(id)));
    expect(writes.length).toBeLessThan(6);
  });
});
