import { type Driver, DriverError } from "@nodeyard/driver";
import { INSTANT } from "@nodeyard/driver-fake";
import { paths } from "@nodeyard/model";
import { sleep } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { fakeProvider, type Json, launcherConfig, World } from "./rules/world.ts";

const POOLS = paths.component("pool");
const ERROR = "503 Service Unavailable";

/** A driver whose `open` takes time or fails as it is told, by provider; it notes what is opened and closed, with max-servers. */
class Clouds {
  readonly events: string[] = [];
  readonly away = new Set<string>();
  readonly slow = new Map<string, number>();
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  wrap = (driver: Driver): Driver => ({
    ...driver,
    open: async (config, context) => {
      const name = `${config.name} ${config.pools[0]!.limits.instances}`;
      const failed = this.away.has(config.name);
      const slow = this.slow.get(config.name);
      this.events.push(`${failed ? "fail" : "open"} ${name}`);
      if (slow !== undefined) await sleep(this.#world.clock, slow);
      if (failed) throw new DriverError("transient", ERROR);
      const provider = await driver.open(config, context);
      const close = provider.close.bind(provider);
      provider.close = () => {
        this.events.push(`close ${name}`);
        return close();
      };
      return provider;
    },
  });
}

const of = (name: string, max: number, label = "small", pool: Json = {}) =>
  fakeProvider(
    name,
    {},
    {
      "max-servers": max,
      labels: [{ name: label, "cloud-image": "image", "flavor-name": "Fake Flavor" }],
      ...pool,
    },
  );
const large = of("two", 5, "large");
const configured = (max: number) => launcherConfig([of("one", max), large]);

/** One launcher with two providers, `one` (small) of which is reloaded, and `two` (large). */
async function served(max = 1) {
  const world = new World();
  const clouds = new Clouds(world);
  const { launcher, log } = await world.start("a", configured(max), { wrap: clouds.wrap });
  clouds.events.length = 0;
  const registered = () => world.children(POOLS).map((name) => world.json(`${POOLS}/${name}`)!);
  return { world, clouds, launcher, log, ids: () => registered().map(({ id }) => String(id)) };
}

describe("a provider whose configuration changes", () => {
  test("while its cloud is away goes on as it was; what is new is tried again until it is in force", async () => {
    const { world, clouds, launcher, log, ids } = await served();
    const before = ids();
    await world.fulfilled(await world.ask());
    const waiting = await world.ask();
    await world.run(2_000);
    clouds.away.add("one");
    await world.settle(launcher.reconfigure(configured(2)));
    await world.run(120_000);
    expect(world.request(waiting)?.state).toBe("requested");
    expect(ids()).toEqual(before);
    expect(new Set(clouds.events)).toEqual(new Set(["fail one 2"]));
    expect(clouds.events.length).toBeGreaterThan(3);
    expect(log.lines.find(({ level }) => level === "error")?.text).toMatch(/keeps the former one/);
    clouds.away.clear();
    await world.fulfilled(waiting, 70_000);
    await world.run(5_000);
    expect(clouds.events.slice(-2)).toEqual(["open one 2", "close one 1"]);
    expect(ids()).toHaveLength(2);
  });

  test("says that the new configuration is not in force, and why", async () => {
    const { world, clouds, launcher } = await served();
    clouds.away.add("one");
    const more = {
      ...of("one", 2),
      pools: [...of("one", 2).pools, ...of("one", 2, "large", { name: "b" }).pools],
    };
    await world.settle(launcher.reconfigure(launcherConfig([more])));
    const reported = (id: string) => world.explain("label", id);
    const small = await reported("small");
    expect(small.pools.filter(({ provider }) => provider === "one")).toMatchObject([
      {
        pool: "one/main",
        code: "pool.can",
        facts: { new_configuration: "not in force", new_configuration_error: ERROR },
      },
    ]);
    expect(small.waits_for).toBeNull();
    // Only the new configuration has it.
    expect((await reported("large")).waits_for).toMatchObject({
      code: "provider.failing",
      facts: { pool: "one/b", error: ERROR, new_configuration: "not in force" },
    });
    clouds.away.clear();
    await world.run(70_000);
    expect((await reported("large")).waits_for).toBeNull();
    expect(JSON.stringify((await reported("small")).pools)).not.toContain("new_configuration");
  });

  test("and opens slowly serves meanwhile, also when another one is ready before it", async () => {
    for (const both of [false, true]) {
      const { world, clouds, launcher, ids } = await served(9);
      const before = ids();
      clouds.slow.set("one", 55_000);
      const two = both ? of("two", 6, "large") : large;
      const reloading = launcher.reconfigure(launcherConfig([of("one", 8), two]));
      await world.run(3_000);
      const asked = [await world.ask(), await world.ask({ node_types: ["large"] })];
      for (const id of asked) await world.fulfilled(id, 2_000);
      expect(before.filter((id) => ids().includes(id))).toHaveLength(both ? 1 : 2);
      await world.settle(reloading);
      await world.fulfilled(await world.ask(), 2_000);
      expect(before.filter((id) => ids().includes(id))).toHaveLength(both ? 0 : 1);
      expect(ids()).toHaveLength(2);
    }
  });

  test("keeps a pool that it has no more until it is replaced", async () => {
    const { world, clouds, launcher, ids } = await served();
    clouds.away.add("one");
    const renamed = launcherConfig([of("one", 1, "small", { name: "other" }), large]);
    await world.settle(launcher.reconfigure(renamed));
    await world.fulfilled(await world.ask(), 2_000);
    clouds.away.clear();
    await world.run(70_000);
    expect(ids().map((id) => id.replace(/-[^-]*$/, ""))).toEqual([
      "a.example-PoolWorker.two-main",
      "a.example-PoolWorker.one-other",
    ]);
    await world.fulfilled(await world.ask(), 2_000);
  });
});

describe("a replacement that is not open yet", () => {
  test("gives way to a third configuration, which does not wait for it", async () => {
    for (const trouble of ["slow", "away"]) {
      const { world, clouds, launcher, ids } = await served();
      if (trouble === "slow") clouds.slow.set("one", 50_000);
      else clouds.away.add("one");
      const second = launcher.reconfigure(configured(2));
      await world.run(5_000);
      clouds.slow.clear();
      clouds.away.clear();
      const third = launcher.reconfigure(launcherConfig([of("one", 3), of("two", 7, "large")]));
      await world.settle(third, 3_000);
      expect(ids()).toHaveLength(2);
      const requests = [await world.ask(), await world.ask(), await world.ask()];
      for (const id of requests) await world.fulfilled(id, 2_000);
      await world.settle(second);
      await world.run(60_000);
      const one = clouds.events.filter((event) => event.includes("one") && !event.startsWith("fail"));
      expect(one).toEqual(
        trouble === "slow"
          ? ["open one 2", "open one 3", "close one 1", "close one 2"]
          : ["open one 3", "close one 1"],
      );
      expect(ids()).toHaveLength(2);
    }
  });

  test("is given up when the configuration goes back to what is served", async () => {
    const { world, clouds, launcher, ids } = await served();
    const before = ids();
    clouds.away.add("one");
    await world.settle(launcher.reconfigure(configured(2)));
    await world.run(5_000);
    await world.settle(launcher.reconfigure(configured(1)), 1_000);
    clouds.away.clear();
    clouds.events.length = 0;
    await world.run(120_000);
    expect(clouds.events).toEqual([]);
    expect(ids()).toEqual(before);
    // And it can be configured anew after that.
    await world.settle(launcher.reconfigure(configured(2)));
    expect(clouds.events).toEqual(["open one 2", "close one 1"]);
  });

  test("goes with its provider when that leaves the configuration", async () => {
    const { world, clouds, launcher, ids } = await served();
    clouds.slow.set("one", 30_000);
    void launcher.reconfigure(configured(2));
    await world.run(5_000);
    await world.settle(launcher.reconfigure(launcherConfig([large])), 3_000);
    expect(ids()).toHaveLength(1);
    expect(clouds.events).toEqual(["open one 2", "close one 1"]);
    await world.run(60_000);
    expect(ids()).toHaveLength(1);
    expect(clouds.events).toEqual(["open one 2", "close one 1", "close one 2"]);
  });

  test("does not enter the registry while the launcher stops", async () => {
    const world = new World({
      latency: { ...INSTANT.latency, create: { minMs: 8_000, maxMs: 8_000 } },
    });
    const clouds = new Clouds(world);
    const { launcher } = await world.start("a", configured(1), { wrap: clouds.wrap });
    const asked = await world.ask();
    await world.run(1_000);
    clouds.slow.set("one", 4_000);
    void launcher.reconfigure(configured(2));
    await world.run(1_000);
    const closing = launcher.close(10_000);
    for (let at = 0; at < 7_000; at += 500) {
      await world.run(500);
      expect(world.children(POOLS).length).toBeLessThanOrEqual(at < 500 ? 2 : 0);
    }
    await world.settle(closing);
    expect(world.request(asked)?.state).toBe("fulfilled");
    expect(clouds.events.filter((event) => event.startsWith("close")).sort()).toEqual([
      "close one 1",
      "close one 2",
      "close two 5",
    ]);
  });
});

test("tenants' limits and labels of a new configuration do not wait for a cloud that does not answer", async () => {
  const { world, clouds, launcher } = await served(9);
  const limited = (max: number, instances: number) => ({
    ...configured(max),
    tenantLimits: new Map([["t", { instances }]]),
  });
  await world.settle(launcher.reconfigure(limited(9, 1)));
  await world.fulfilled(await world.ask({ tenant_name: "t" }));
  const held = await world.ask({ tenant_name: "t" });
  await world.run(3_000);
  expect(world.request(held)?.state).toBe("requested");
  clouds.slow.set("one", 55_000);
  void launcher.reconfigure(limited(8, 5));
  await world.fulfilled(held, 2_000);
});
