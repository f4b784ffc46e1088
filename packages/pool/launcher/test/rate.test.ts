import { type Driver, decorate, RateLimiter } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const INTERVAL_MS = 100;

test("a cloud that is called ten times a second gets no less than 95 % of that while there is work, and never more", async () => {
  const world = new World();
  const calls: number[] = [];
  let creates = 0;
  let lastCreate = 0;
  const limited = (driver: Driver): Driver => ({
    ...driver,
    open: async (config, context) => {
      const limiter = new RateLimiter({ clock: world.clock, intervalMs: INTERVAL_MS });
      return decorate(await driver.open(config, context), async (name, call, signal) => {
        if (name !== "need") await limiter.turn(signal);
        if (name !== "need") calls.push(world.clock.monotonic());
        if (name === "create") {
          creates++;
          lastCreate = world.clock.monotonic();
        }
        return call();
      });
    },
  });
  await world.start("a", launcherConfig([fakeProvider()]), { wrap: limited });
  const from = world.clock.monotonic();
  const ids: string[] = [];
  for (let count = 0; count < 60; count++) ids.push(await world.ask());
  await world.until(
    "all are fulfilled",
    () => ids.every((id) => world.request(id)?.state === "fulfilled"),
    120_000,
  );
  const under = calls.filter((at) => at >= from && at <= lastCreate);
  const seconds = (lastCreate - under[0]!) / 1_000;
  expect(creates).toBeGreaterThanOrEqual(ids.length);
  expect(under.length).toBeGreaterThanOrEqual(0.95 * seconds * (1_000 / INTERVAL_MS));
  for (let at = 10; at < calls.length; at++)
    expect(calls[at]! - calls[at - 10]!).toBeGreaterThanOrEqual(10 * INTERVAL_MS);
});
