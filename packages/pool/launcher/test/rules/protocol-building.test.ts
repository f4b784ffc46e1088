import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import type { Call } from "./before-write.ts";
import { fakeProvider, launcherConfig, World } from "./world.ts";

const OURS = { provider: "cloud", pool: "main", type: ["small"], allocated_to: "100-0000000099" };
const config = launcherConfig([fakeProvider()]);
/** Longer than any sweep. */
const LONG_MS = 200_000;

const standing = (world: World) => world.cloud.inspect().map(({ id }) => id);

test("the record has the machine's id while it boots, so that a later clean-up can find it", async () => {
  const world = new World();
  world.cloud.adjust({
    ...world.cloud.knobs,
    latency: { ...world.cloud.knobs.latency, boot: { minMs: 5_000, maxMs: 5_000 } },
  });
  await world.start("a", config);
  await world.ask();
  const [id] = await world.until("it boots", () => standing(world).length > 0 && standing(world));
  await world.run(500);
  expect(world.nodes()).toMatchObject([{ state: "building", external_id: id }]);
});

describe("an unlocked building record", () => {
  test("is garbage: the record goes within seconds, and so does the machine that carries our tag", async () => {
    const world = new World();
    await world.start("a", config);
    const id = await world.makeNode({ ...OURS, state: "building", state_time: world.clock.now() / 1000 });
    const made = await world.machine(id);
    await world.until("the record is gone", () => world.node(id) === undefined, 10_000);
    await world.until("the machine too", () => !standing(world).includes(made), LONG_MS);
  });

  test("is left alone while any client has its lock, a contender of an unknown kind included", async () => {
    const world = new World();
    const id = await world.makeNode({ ...OURS, state: "building", state_time: world.clock.now() / 1000 });
    const lock = await world.contend(paths.nodeLock(id), Buffer.from("somebody else"));
    // Only now: a launcher that saw the record before its lock would delete it within milliseconds.
    await world.start("a", config);
    await world.run(LONG_MS);
    expect(world.node(id)?.state).toBe("building");
    await world.settle(world.other.delete(lock));
    await world.until("the record is gone", () => world.node(id) === undefined, 10_000);
  });

  test("of a provider that a Python launcher serves goes too, but nothing in the cloud that is not ours", async () => {
    const world = new World();
    await world.pythonPool("cloud", ["small"]);
    await world.start("a", config);
    const theirs = await world.machine("m", null);
    const others = await world.machine("m", { installation: "11111111-2222-4333-8444-555555555555" });
    const id = await world.makeNode({ ...OURS, state: "building", state_time: world.clock.now() / 1000 });
    await world.until("the record is gone", () => world.node(id) === undefined, 10_000);
    await world.run(LONG_MS);
    expect(standing(world).sort()).toEqual([theirs, others].sort());
  });
});

test("the record of a node whose creation was not answered is found again, and launched", async () => {
  const world = new World();
  await world.folder(paths.nodes);
  const isNode = ({ ops }: Call) => ops.some(({ op, path }) => op === "create" && path === `${paths.nodes}/`);
  let made = 0;
  world.fault = (call) => (isNode(call) && ++made === 1 ? "lose-reply" : undefined);
  await world.start("a", config);
  const { nodes } = await world.fulfilled(await world.ask());
  expect([made, nodes]).toEqual([1, world.nodes().map(({ id }) => id)]);
});
