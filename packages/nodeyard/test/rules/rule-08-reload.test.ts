import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./world.ts";

test("a pool that leaves the configuration while requests wait for it leaves no work that never ends", async () => {
  const world = new World();
  const one = fakeProvider("one", {}, { "max-servers": 1 });
  const { launcher, counters } = await world.start("a", launcherConfig([one]));
  await world.fulfilled(await world.ask());
  for (let at = 0; at < 3; at++) await world.ask();
  await world.run(500);
  // Time stands still for a loop that asks for another turn at once: then this never comes back.
  const reload = launcher.reconfigure(launcherConfig([fakeProvider("other")]));
  const before = counters.value("scheduler.turns");
  void world.run(5_000);
  for (let step = 0; step < 200_000; step++) await Promise.resolve();
  expect(counters.value("scheduler.turns") - before).toBeLessThan(100);
  await reload;
});
