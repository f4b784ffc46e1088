import type { Driver } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const NONE = { minMs: 0, maxMs: 0 };
const TEN_SECONDS = { minMs: 10_000, maxMs: 10_000 };
/** Longer than what is made meanwhile takes. */
const THIRTY_SECONDS = { minMs: 30_000, maxMs: 30_000 };

/** Notes which providers are opened and closed. */
function watching() {
  const events: string[] = [];
  const wrap = (driver: Driver): Driver => ({
    ...driver,
    open: async (config, context) => {
      events.push(`open ${config.name}`);
      const provider = await driver.open(config, context);
      const close = provider.close.bind(provider);
      provider.close = () => {
        events.push(`close ${config.name}`);
        return close();
      };
      return provider;
    },
  });
  return { events, wrap };
}

const pools = (world: World) =>
  world.children(paths.component("pool")).map((name) => {
    const { provider_name } = world.json(`${paths.component("pool")}/${name}`) as { provider_name: string };
    return `${provider_name} ${name}`;
  });

describe("a new configuration", () => {
  test("does not touch what did not change: the provider stays open, its pool keeps its place in the registry", async () => {
    const world = new World();
    const { events, wrap } = watching();
    const [one, two] = [fakeProvider("one"), fakeProvider("two")];
    const { launcher } = await world.start("a", launcherConfig([one, two]), { wrap });
    const before = pools(world).filter((pool) => pool.startsWith("one"));
    await world.settle(
      launcher.reconfigure(launcherConfig([fakeProvider("one"), fakeProvider("two", { priority: 5 })])),
    );
    await world.run(5_000);
    expect(events).toEqual(["open one", "open two", "open two", "close two"]);
    expect(pools(world).filter((pool) => pool.startsWith("one"))).toEqual(before);
    expect(pools(world)).toHaveLength(2);
    await world.fulfilled(await world.ask());
  });

  test("that leaves a provider out: what is being made is delivered, what is used is deleted when it comes back, then it is closed", async () => {
    const world = new World({
      latency: { create: TEN_SECONDS, boot: NONE, delete: THIRTY_SECONDS, read: NONE },
    });
    const { events, wrap } = watching();
    const { launcher } = await world.start("a", launcherConfig([fakeProvider("one")]), { wrap });
    const first = await world.ask();
    const { nodes } = await world.fulfilled(first);
    const [used] = nodes as [string];
    await world.use(first);
    const second = await world.ask();
    await world.until("one is made, one deleted", () => {
      const states = world.nodes().map(({ state }) => state);
      return states.includes("building") && states.includes("deleting");
    });
    await world.run(100);
    await world.settle(launcher.reconfigure(launcherConfig([])));
    expect(pools(world)).toEqual([]);
    expect(events).toEqual(["open one"]);
    await world.fulfilled(second, 30_000);
    await world.until("the used one is gone", () => world.node(used) === undefined, 60_000);
    expect(events).toEqual(["open one"]);
    expect(world.cloud.inspect()).toHaveLength(1);
    await world.use(second);
    const clean = () => world.nodes().length === 0 && world.cloud.inspect().length === 0;
    await world.until("all is gone", clean, 60_000);
    await world.until("it is closed", () => events.includes("close one"), 120_000);
    expect(events).toEqual(["open one", "close one"]);
  });
});
