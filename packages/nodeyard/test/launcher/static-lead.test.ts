import type { Driver, ProbeVerdict, Provider } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { Live } from "../../src/telemetry/index.ts";
import { launcherConfig, staticProvider, World } from "../rules/world.ts";

const HOST = { name: "10.0.0.1", labels: ["small"], "host-key-checking": false, username: "u" };

test("who lost the lead over an inventory with a dead host does not go on looking for it", async () => {
  const world = new World();
  let away = true;
  const wrap = (driver: Driver): Driver => ({
    ...driver,
    open: async (config, context) => {
      const provider = await driver.open(config, context);
      const probe: Provider["probe"] = async (item, signal) =>
        away ? ({ alive: false, why: "no route to host" } satisfies ProbeVerdict) : inner(item, signal);
      const inner = provider.probe.bind(provider);
      return Object.assign(provider, { probe });
    },
  });
  const a = await world.start("a", launcherConfig([staticProvider([HOST])]), { wrap });
  await world.start("b", launcherConfig([staticProvider([HOST])]), { wrap });
  await world.run(20_000);
  away = false;
  a.tree.expire();
  await world.until("the host is registered", () => world.nodes().length === 1, 200_000);
  await world.run(60_000);
  expect(await looksWithin(world, 60_000)).toBeLessThan(10);
});

/** How often the inventory was looked at by anybody. */
async function looksWithin(world: World, ms: number): Promise<number> {
  const { during } = Live.prototype;
  let looks = 0;
  Live.prototype.during = function (this: Live, task, work) {
    if (task.name.startsWith("inventory")) looks += 1;
    return during.call(this, task, work) as ReturnType<typeof work>;
  };
  try {
    await world.run(ms);
  } finally {
    Live.prototype.during = during;
  }
  return looks;
}
