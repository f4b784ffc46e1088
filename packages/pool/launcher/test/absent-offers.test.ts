import type { Driver } from "@nodeyard/driver";
import { DriverError } from "@nodeyard/driver";
import { sleep } from "@nodeyard/runtime";
import { OFFER_GRACE_MS } from "@nodeyard/scheduler";
import { describe, expect, test } from "vitest";
import { fakeProvider, type Json, launcherConfig, World } from "./rules/world.ts";

const of = (name: string, label: string, pool: Json = {}) =>
  fakeProvider(
    name,
    {},
    { labels: [{ name: label, "cloud-image": "image", "flavor-name": "Fake Flavor" }], ...pool },
  );

/** Opens the provider `slow` after `ms`, milliseconds, and never when that is Infinity. */
const opening =
  (world: World, ms: number) =>
  (driver: Driver): Driver => ({
    ...driver,
    open: async (config, context) => {
      if (config.name === "slow" && ms === Number.POSITIVE_INFINITY)
        throw new DriverError("transient", "503");
      if (config.name === "slow") await sleep(world.clock, ms);
      return driver.open(config, context);
    },
  });

const both = launcherConfig([of("slow", "small"), of("quick", "large")]);

/** A request that waits, since its pool may have one machine, and the request that has this machine. */
async function waitingFor(world: World): Promise<{ readonly has: string; readonly waits: string }> {
  const has = await world.ask();
  await world.fulfilled(has);
  const waits = await world.ask();
  await world.run(2_000);
  expect(world.request(waits)?.state).toBe("requested");
  return { has, waits };
}

async function giveBack(world: World, request: string): Promise<void> {
  const [node] = world.request(request)!.nodes as string[];
  await world.put(`/nodepool/nodes/${node}`, { ...world.node(node!), state: "used" });
  await world.settle(world.other.delete(`/nodepool/requests/${request}`));
}

const waiting = (world: World, request: string) => () => world.request(request)?.state === "requested";

describe("requests wait for an offer that is not registered", () => {
  test("while its provider is opened: after a restart, and when it was asked for meanwhile", async () => {
    const world = new World();
    const one = { "max-servers": 1 };
    const config = launcherConfig([of("slow", "small", one), of("quick", "large")]);
    const { launcher } = await world.start("a", config);
    const { has, waits } = await waitingFor(world);
    await world.settle(launcher.close());
    const { starting } = world.launch("a", config, { wrap: opening(world, 30_000) });
    await world.run(20_000);
    const asked = await world.ask();
    await world.run(5_000);
    expect([waits, asked].map((id) => waiting(world, id)())).toEqual([true, true]);
    const again = await world.settle(starting);
    await giveBack(world, has);
    await world.fulfilled(waits);
    await giveBack(world, waits);
    await world.fulfilled(asked);
    expect(world.request(asked)?.declined_by ?? []).toEqual([]);
    await world.settle(again.launcher.close());
  });

  test("as long as the grace lasts: when the provider does not open within it, they fail, and explain says until when", async () => {
    const world = new World();
    const { launcher } = await world.start("a", both, { wrap: opening(world, Number.POSITIVE_INFINITY) });
    const asked = await world.ask();
    await world.run(1_000);
    expect(launcher.verdict(asked)).toMatchObject({
      code: "offer.awaited",
      facts: { provider: "slow", labels: ["small"] },
    });
    await world.run(OFFER_GRACE_MS - 60_000);
    expect(waiting(world, asked)()).toBe(true);
    await world.until("it failed", () => world.request(asked)?.state === "failed", 120_000);
    // From now on nothing is waited for.
    const late = await world.ask();
    await world.until("it failed, too", () => world.request(late)?.state === "failed", 5_000);
  });

  test("when a reload renames their provider", async () => {
    const world = new World();
    const { launcher } = await world.start(
      "a",
      launcherConfig([of("before", "small", { "max-servers": 1 }), of("quick", "large")]),
      { wrap: opening(world, 6_000) },
    );
    const { waits } = await waitingFor(world);
    await world.settle(launcher.reconfigure(both));
    await world.fulfilled(waits);
  });

  test("when one of two launchers is restarted, whether the other lacks the label or cannot serve it", async () => {
    const world = new World();
    const a = launcherConfig([of("pa", "small")]);
    const first = await world.start("a", a);
    await world.start(
      "b",
      launcherConfig([
        of("pb", "large"),
        // It has the label and declines: the nodeset is larger than the pool.
        of("pc", "small", { "max-servers": 1 }),
      ]),
    );
    await world.settle(first.launcher.close());
    const pair = await world.ask({ node_types: ["small", "small"] });
    await world.until("b declined", () => (world.request(pair)?.declined_by as string[])?.length === 1);
    await world.run(60_000);
    expect(waiting(world, pair)()).toBe(true);
    await world.start("a", a);
    await world.fulfilled(pair);
  });

  test("which the launcher found when it started, and not for a label that nobody has had", async () => {
    const world = new World();
    const early = await world.ask({ node_types: ["large"] });
    const { launcher } = await world.start("b", launcherConfig([of("pb", "small")]));
    await world.run(60_000);
    expect(waiting(world, early)()).toBe(true);
    expect(launcher.verdict(early)).toMatchObject({ code: "offer.awaited", facts: { provider: null } });
    const typo = await world.ask({ node_types: ["theirz"] });
    await world.until("it failed", () => world.request(typo)?.state === "failed", 5_000);
    await world.start("a", launcherConfig([of("pa", "large")]));
    await world.fulfilled(early);
  });
});
