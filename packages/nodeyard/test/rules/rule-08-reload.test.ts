import { expect, test } from "vitest";
import { Desk, policy, pool } from "../scheduler/world.ts";
import { fakeProvider, launcherConfig, World } from "./world.ts";

test("rule 8: a pool that leaves while requests wait for it leaves no turn that asks for another one for ever", () => {
  const one = policy([pool({ limits: { instances: 1 } })]);
  const desk = new Desk(one);
  desk.request("100-0000000000");
  for (let at = 1; at < 4; at++) desk.request(`100-000000000${at}`);
  // The desk turns until nothing is left to do, and throws when that never comes.
  desk.tell({ type: "policy", policy: policy([pool({ provider: "other" })]) });
  expect(desk.state.pools.size).toBe(1);
  expect([...desk.state.dirty]).toEqual([]);
});

test("rule 8: a launcher that was told to forget a provider comes to rest, and serves what the new one offers", async () => {
  const world = new World();
  const one = fakeProvider("one", {}, { "max-servers": 1 });
  const { launcher, counters } = await world.start("a", launcherConfig([one]));
  await world.fulfilled(await world.ask());
  const waiting = [await world.ask(), await world.ask()];
  await world.run(500);
  await world.settle(launcher.reconfigure(launcherConfig([fakeProvider("other")])));
  for (const id of waiting) await world.fulfilled(id);
  const before = counters.value("scheduler.turns");
  await world.run(60_000);
  expect(counters.value("scheduler.turns") - before).toBeLessThan(100);
});
