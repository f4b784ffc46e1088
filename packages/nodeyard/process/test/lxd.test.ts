import { writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { LxdServer, requireLxd } from "../../../../testing/lxd/index.ts";
import { patient } from "../../../../testing/patience.ts";
import { type Granted, Site } from "../../cli/test/nodeyard.ts";

const LIMIT_MS = patient(60_000);

/** A launcher as people run it, and a real LXD whose containers answer SSH. */
describe.skipIf(requireLxd() !== undefined)("a launcher with containers is killed", () => {
  let server: LxdServer;
  let site: Site;
  beforeAll(async () => {
    server = await LxdServer.start();
  }, LIMIT_MS);
  afterAll(() => server?.stop());
  beforeEach(() => {
    const tiny = { name: "tiny", "cloud-image": "tiny", cores: 1, ram: 64 };
    const pools = [{ name: "main", "max-servers": 4, labels: [tiny] }];
    const images = [{ name: "tiny", username: "root" }];
    const provider = { name: "big", driver: "lxd", server: server.socket, "cloud-images": images, pools };
    site = new Site("");
    // What was made for a request that has ended is free for others; here for a second.
    writeFileSync(
      site.config,
      JSON.stringify({ labels: [{ name: "tiny", "max-ready-age": 1 }], providers: [provider] }),
    );
  });
  afterEach(() => site.close());

  const instances = async () => (await server.call("GET", "/1.0/instances")) as unknown as readonly string[];
  const none = () => expect.poll(instances, { timeout: LIMIT_MS }).toEqual([]);

  test("while nodes are in use: they stay with their lease, and go with it", async () => {
    const first = await site.up();
    const { lease, nodes } = await site.json<Granted>("request", "tiny:2", "--wait");
    const before = await instances();
    expect(before).toHaveLength(2);
    await first.kill("SIGKILL");
    await site.up();
    expect(await instances()).toEqual(before);
    const listed = await site.json<{ readonly id: string; readonly state: string }[]>("list");
    expect(listed.map(({ id, state }) => [id, state]).sort()).toEqual(
      nodes.map(({ id }) => [id, "in-use"]).sort(),
    );
    expect((await site.run("release", lease)).code).toBe(0);
    await none();
  });

  test.each([1, 2])(
    "while they are made, after %i of them: given back, and nothing is left",
    async (made) => {
      const first = await site.up();
      await site.run("request", "tiny:3");
      await expect
        .poll(async () => (await instances()).length, { timeout: LIMIT_MS, interval: 20 })
        .toBeGreaterThanOrEqual(made);
      await first.kill("SIGKILL");
      await site.up();
      const leases = await site.json<{ readonly id: string }[]>("list", "--leases");
      expect(leases).toHaveLength(1);
      expect((await site.run("release", leases[0]!.id)).code).toBe(0);
      await none();
      await expect.poll(() => site.json("list"), { timeout: LIMIT_MS }).toEqual([]);
    },
  );
});
