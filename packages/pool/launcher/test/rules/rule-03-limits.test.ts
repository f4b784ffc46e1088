import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./world.ts";

const config = launcherConfig([fakeProvider("cloud", {}, { "max-servers": 3 })]);
const ledger = (world: World) => world.json("/nodeyard/limits/cloud/main")?.instances;

test("rule 3: a corrupted ledger is counted again, and exceeds no limit for long", async () => {
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

describe("rule 3: what others use", () => {
  test("of the cloud counts as it is seen: nothing is launched beyond it, and it is used when it comes back", async () => {
    const world = new World({ quota: { instances: 3 } });
    const first = await world.machine("x", null);
    await world.machine("y", null);
    const { launcher } = await world.start("launcher-a", launcherConfig([fakeProvider()]));
    const ids = [await world.ask(), await world.ask()];
    await world.fulfilled(ids[0]!);
    await world.run(60_000);
    expect(world.request(ids[1]!)?.state).toBe("requested");
    expect(world.request(ids[1]!)?.declined_by ?? []).toEqual([]);
    const verdict = { code: "capacity.provider", facts: { limit: 1, used: 1 } };
    expect(launcher.verdict(ids[1]!)).toMatchObject(verdict);
    await world.cloud.delete(first, new AbortController().signal);
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
