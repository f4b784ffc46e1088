import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { checkLog } from "./lost-writes.ts";
import { fakeProvider, launcherConfig, World } from "./world.ts";

const limits = new Map([["cloud/main", 3]]);
const config = launcherConfig([fakeProvider("cloud", {}, { "max-servers": 3 })]);
const SLOW = {
  latency: {
    create: { minMs: 200, maxMs: 2_000 },
    boot: { minMs: 100, maxMs: 500 },
    delete: { minMs: 100, maxMs: 500 },
    read: { minMs: 0, maxMs: 0 },
  },
};

const ledger = (world: World) => world.json("/nodeyard/limits/cloud/main")?.instances;

/** Uses and returns each nodeset as it comes; returns how many records stood at most. */
async function serveAll(world: World, ids: readonly string[]): Promise<number> {
  const open = new Set(ids);
  let most = 0;
  while (open.size > 0) {
    for (const id of open) {
      most = Math.max(most, world.nodes().length);
      if (world.request(id)?.state !== "fulfilled") continue;
      open.delete(id);
      await world.use(id);
    }
    await world.run(20);
    expect(world.clock.monotonic()).toBeLessThan(1_200_000);
  }
  return most;
}

describe("rule 3: max-servers among several launchers", () => {
  test("is never passed, is used up, and what is launching counts", async () => {
    const world = new World(SLOW);
    for (const name of ["launcher-a", "launcher-b", "launcher-c"]) await world.start(name, config);
    const ids = [];
    for (let at = 0; at < 8; at++) ids.push(await world.ask());
    const most = await serveAll(world, ids);
    expect(most).toBe(3);
    // A record counts from its `init` on: before the cloud was asked for anything.
    checkLog(world.cluster.log, limits);
  });

  test("holds when replies are lost and a session ends; the ledger says what exists", async () => {
    const world = new World(SLOW);
    await world.start("launcher-a", config);
    const { tree } = await world.start("launcher-b", config);
    let writes = 0;
    world.fault = ({ kind }) =>
      kind === "write" && ++writes % 7 === 0 ? (writes % 2 === 0 ? "lose-reply" : "lose-request") : undefined;
    const ids = [];
    for (let at = 0; at < 6; at++) ids.push(await world.ask());
    await world.run(700);
    tree.expire();
    await serveAll(world, ids);
    world.fault = () => undefined;
    await world.until("all is gone", () => world.nodes().length === 0, 300_000);
    await world.until("the ledger agrees", () => ledger(world) === 0, 300_000);
    checkLog(world.cluster.log, limits);
  });

  test("a corrupted ledger is counted again, and exceeds no limit for long", async () => {
    const world = new World();
    await world.start("launcher-a", config);
    for (let at = 0; at < 3; at++) await world.fulfilled(await world.ask());
    expect(ledger(world)).toBe(3);
    await world.put("/nodeyard/limits/cloud/main", { v: 1, instances: 7 });
    await world.until("it is set right", () => ledger(world) === 3, 300_000);
    await world.put("/nodeyard/limits/cloud/main", "nonsense");
    const waiting = await world.ask();
    await world.run(300_000);
    expect(world.request(waiting)?.state).toBe("requested");
    expect(world.nodes()).toHaveLength(3);
  });
});

describe("rule 3: what others use", () => {
  test("of the cloud counts as it is seen: nothing is launched beyond it, and it is used when it comes back", async () => {
    const world = new World({ quota: { instances: 3 } });
    const server = (name: string) => ({
      name,
      tag: null,
      az: null,
      resources: { instances: 1 },
      networks: [],
      imageProperties: {},
    });
    const { signal } = new AbortController();
    const [first] = await Promise.all(["x", "y"].map((name) => world.cloud.create(server(name), signal)));
    await world.start("launcher-a", launcherConfig([fakeProvider()]));
    const ids = [await world.ask(), await world.ask()];
    await world.fulfilled(ids[0]!);
    await world.run(60_000);
    expect(world.request(ids[1]!)?.state).toBe("requested");
    expect(world.request(ids[1]!)?.declined_by ?? []).toEqual([]);
    await world.cloud.delete(first!.id, signal);
    await world.fulfilled(ids[1]!, 900_000);
  });

  test("records of another's making count for the pool as soon as they are seen", async () => {
    const world = new World();
    for (let at = 0; at < 3; at++) {
      const id = await world.makeNode({ state: "ready", provider: "cloud", pool: "main", type: ["other"] });
      await world.contend(paths.nodeLock(id));
    }
    const { launcher } = await world.start("launcher-a", config);
    const id = await world.ask();
    await world.run(30_000);
    expect(world.request(id)?.state).toBe("requested");
    expect(launcher.verdict(id)).toMatchObject({ code: "capacity.pool", facts: { limit: 3, used: 3 } });
    expect(ledger(world) ?? 3).toBe(3);
  });
});
