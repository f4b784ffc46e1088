import { paths } from "@nodeyard/model";
import { expect, test } from "vitest";
import type { RecordHandles } from "../../src/held-records.ts";
import { everyoneDeclined } from "../../src/requests/finish.ts";
import { fakeProvider, launcherConfig, World } from "./world.ts";

const PYTHON = "old.example-PoolWorker.p-main-0123";

test("an incomplete view decides nothing, nor does an empty registry or one without a pool that could decline", () => {
  const pools = (ids: readonly (string | null)[]) =>
    new Map(ids.map((id, at) => [`pool/${at}`, { kind: "pool", record: { id } }]));
  const decided = (complete: boolean, ids: readonly (string | null)[], declined: readonly string[]) =>
    everyoneDeclined({ view: { complete, components: pools(ids) } } as unknown as RecordHandles, declined);
  expect(decided(true, ["a", "b"], ["b", "a", "gone"])).toBe(true);
  expect(decided(false, ["a", "b"], ["b", "a"])).toBe(false);
  expect(decided(true, ["a", "b"], ["a"])).toBe(false);
  expect(decided(true, [], ["a"])).toBe(false);
  expect(decided(true, [null], ["a"])).toBe(false);
  expect(decided(true, ["a", null], ["a"])).toBe(true);
});

test("beside a Python pool that has not declined a request only gets our name, and fails when that one has said no", async () => {
  const world = new World();
  await world.pythonPool("p", []);
  await world.start("a", launcherConfig([fakeProvider()]));
  const id = await world.ask({ node_types: ["nobody-has-it"], declined_by: [] });
  const declined = () => (world.request(id)?.declined_by ?? []) as string[];
  await world.until("ours declined", () => declined().length === 1);
  await world.run(10_000);
  expect(world.request(id)).toMatchObject({ state: "requested" });
  expect(declined()).toHaveLength(1);
  // It declines as Python does: under the lock, the whole record written.
  const lock = await world.contend(paths.requestLock(id));
  await world.put(paths.request(id), { ...world.request(id), declined_by: [...declined(), PYTHON] });
  await world.settle(world.other.delete(lock));
  await world.until("it failed", () => world.request(id)?.state === "failed", 5_000);
  expect(declined()).toContain(PYTHON);
});

test("what a Python pool alone offers is left to it, and nothing of it is written", async () => {
  const world = new World();
  await world.pythonPool("p", ["python-only"]);
  const { launcher } = await world.start("a", launcherConfig([fakeProvider()]));
  const id = await world.ask({ node_types: ["python-only"] });
  await world.run(30_000);
  const ours = world.cluster.log.filter(
    ({ client, ops }) => client === "a" && ops.some(({ path }) => path === paths.request(id)),
  );
  expect(world.request(id)?.state).toBe("requested");
  expect(ours.length).toBeLessThan(2);
  expect(launcher.verdict(id)).toBeDefined();
});
