import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireZooKeeper } from "../../zookeeper/index.ts";
import type { Agent } from "../agent.ts";
import { type ForeignSite, startForeignSite } from "../site.ts";

const POOLS = "/nodepool/components/pool";

describe.skipIf(requireZooKeeper())("a launcher's session, watched by kazoo", () => {
  let site: ForeignSite;
  let client: Agent;

  beforeAll(async () => {
    site = await startForeignSite("zookeeper");
    client = site.agent();
  });
  afterAll(() => site?.close());

  async function pools(): Promise<Map<string, { data: string; version: number }>> {
    const found = new Map<string, { data: string; version: number }>();
    for (const name of await client.children(POOLS)) found.set(name, await client.text(`${POOLS}/${name}`));
    return found;
  }

  test("13: a pool without room says so in its component, with one write, and takes it back with another", async () => {
    const narrow = async () => [...(await pools()).values()].find(({ data }) => data.includes("narrow"))!;
    const before = await narrow();
    expect(JSON.parse(before.data)).toMatchObject({ paused: false });
    const first = await client.request(["narrow"]);
    const [node] = (await client.requestIs(first, "fulfilled")).nodes as string[];
    await client.lock(`/nodepool/nodes/${node}/lock`);
    const second = await client.request(["narrow"]);
    await expect.poll(async () => JSON.parse((await narrow()).data)).toMatchObject({ paused: true });
    expect((await narrow()).version).toBe(before.version + 1);
    await client.delete(`/nodepool/requests/${first}`);
    await client.change(`/nodepool/nodes/${node}`, { state: "used" });
    await client.unlock(`/nodepool/nodes/${node}/lock`);
    await client.requestIs(second, "fulfilled");
    await expect.poll(async () => JSON.parse((await narrow()).data)).toMatchObject({ paused: false });
    expect((await narrow()).version).toBe(before.version + 2);
    await client.delete(`/nodepool/requests/${second}`);
  });

  test("12, 36: suspended past its session, it comes back under a higher number with the same content, and serves", async () => {
    const before = await pools();
    const launching = await client.request(["slow"]);
    await client.requestIs(launching, "pending");
    site.launcher.pause();
    try {
      for (const name of before.keys()) await client.gone(`${POOLS}/${name}`);
      // Its locks are free: another client could hold them by now.
      expect(await client.children(`/nodepool/requests-lock/${launching}`)).toEqual([]);
      await sleep(500);
    } finally {
      site.launcher.resume();
    }
    await expect.poll(async () => (await client.children(POOLS)).length).toBe(before.size);
    const after = await pools();
    const lastBefore = Math.max(...[...before.keys()].map((name) => Number(name.slice(-10))));
    for (const name of after.keys()) expect(Number(name.slice(-10))).toBeGreaterThan(lastBefore);
    const contents = (of: typeof before) => [...of.values()].map(({ data }) => data).sort();
    expect(contents(after)).toEqual(contents(before));
    const done = await client.requestIs(launching, "fulfilled");
    expect(done.nodes).toHaveLength(1);
  });
});
