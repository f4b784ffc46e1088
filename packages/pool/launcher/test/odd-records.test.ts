import { describe, expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const AGE = 3_600_000;
const LABEL = { "cloud-image": "image", "flavor-name": "Fake Flavor" };

describe("what no launcher would write", () => {
  test("a held node whose record gives no time is as old as it has been known", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()], { maxHoldAgeMs: AGE }));
    const ids: string[] = [];
    for (const state_time of [null, "yesterday", undefined])
      ids.push(
        await world.makeNode({ state: "hold", provider: "cloud", pool: "main", type: ["small"], state_time }),
      );
    const states = () => ids.map((id) => world.node(id)?.state);
    await world.run(0.9 * AGE);
    expect(states()).toEqual(["hold", "hold", "hold"]);
    await world.until("they are gone", () => states().every((state) => state === undefined), 0.2 * AGE);
  });

  test("a negative amount counts as nothing, and stops no request", async () => {
    const world = new World();
    const resources = { instances: 1, ram: -1 };
    await world.makeNode({ state: "in-use", provider: "cloud", pool: "main", type: ["small"], resources });
    const limits = { "max-servers": 5, "max-ram": 100_000 };
    await world.start("a", launcherConfig([fakeProvider("cloud", {}, limits)]));
    await world.fulfilled(await world.ask());
    await world.run(60_000);
    expect(world.json("/nodeyard/limits/cloud/main")).toMatchObject({ ram: expect.any(Number) });
    expect(world.cluster.znodes.stat("/nodeyard/limits/cloud/main")!.version).toBeLessThan(20);
  });

  test("slashes in names of providers and pools: none is taken for another", async () => {
    const world = new World();
    const make = (name: string, pool: string, label: string) =>
      fakeProvider(name, {}, { name: pool, "max-servers": 1, labels: [{ name: label, ...LABEL }] });
    await world.start("a", launcherConfig([make("a", "b/c", "small"), make("a/b", "c", "large")]));
    for (const label of ["small", "large"]) await world.fulfilled(await world.ask({ node_types: [label] }));
    const limits = "/nodeyard/limits";
    const pools = world
      .children(limits)
      .flatMap((of) => world.children(`${limits}/${of}`).map((pool) => [of, pool]));
    expect(pools.filter(([of]) => !of!.startsWith("@"))).toEqual([
      ["a", "b%2Fc"],
      ["a%2Fb", "c"],
    ]);
  });
});
