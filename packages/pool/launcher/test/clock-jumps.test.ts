import { failurePath, labelKey, offeringKey, paths } from "@nodeyard/model";
import { askForNodes } from "@nodeyard/operations";
import type { Clock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { handles, leaseOf } from "./rules/lease-world.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAYS = 48 * HOUR;
const KEY = offeringKey({ provider: "cloud", az: "az1", type: "small" });
const NO_ROOM = { availabilityZones: ["az1"], capacity: { az1: 0 } };
const BOTH_WAYS = [
  ["back", -DAYS],
  ["forward", DAYS],
] as const;
const config = launcherConfig([fakeProvider("cloud", { "launch-retries": 3 })]);

/** Counts what launchers send to the tree, and how many node records they make. */
function counting(world: World): { writes: number; records: number } {
  const counts = { writes: 0, records: 0 };
  world.fault = ({ kind, path }) => {
    if (kind === "write") counts.writes++;
    if (kind === "write" && path === `${paths.nodes}/`) counts.records++;
    return undefined;
  };
  return counts;
}

/** Time in steps that are as long as nothing has to be looked at in between. */
async function runFor(world: World, ms: number): Promise<void> {
  for (let at = 0; at < ms; at += MINUTE) await world.run(MINUTE);
}

/** Milliseconds until it is fulfilled. */
async function served(world: World, request: string, limitMs: number): Promise<number> {
  const began = world.clock.monotonic();
  await world.fulfilled(request, limitMs);
  return world.clock.monotonic() - began;
}

/** A client asks for a lease of an hour, just after the clock jumped. */
async function leased(jumpMs = 0) {
  const world = new World();
  await world.start("a", config);
  if (jumpMs !== 0) world.clock.jump(jumpMs);
  const asking = { labels: ["small"], owner: "me", forMs: HOUR };
  const { id } = await world.settle(askForNodes(handles(world), asking));
  return { world, lease: () => leaseOf(world, id)?.state };
}

async function expectLeasedForAnHour(world: World, lease: () => unknown): Promise<void> {
  await runFor(world, 58 * MINUTE);
  expect(lease()).toBe("granted");
  await runFor(world, 4 * MINUTE);
  expect(lease()).toBeUndefined();
  expect(world.nodes().filter((node) => node.state === "in-use")).toEqual([]);
}

describe("the clock of all is put back or forward by two days", () => {
  test.each(BOTH_WAYS)("%s, while a breaker is open: it is tried as often as before", async (_, ms) => {
    const world = new World(NO_ROOM);
    await world.start("a", config);
    const id = await world.ask();
    await world.until("the breaker is open", () => world.json(failurePath(KEY)));
    await world.run(2_000);
    world.clock.jump(ms);
    const counts = counting(world);
    await runFor(world, 6 * HOUR);
    // A try every 144 to 336 s, and each takes about a dozen writes.
    expect(counts.records).toBeGreaterThanOrEqual(60);
    expect(counts.records).toBeLessThanOrEqual(160);
    expect(counts.writes).toBeLessThanOrEqual(2_400);
    world.cloud.adjust({ ...world.cloud.knobs, capacity: {} });
    expect(await served(world, id, 6 * MINUTE)).toBeLessThanOrEqual(6 * MINUTE);
    await world.until("the breaker is closed", () => world.json(failurePath(KEY)) === undefined);
  });

  test("back, while a breaker waits for a try: scheduler and launch agree on its time", async () => {
    const world = new World(NO_ROOM);
    await world.start("a", config);
    const first = await world.ask();
    await world.until("the breaker is open", () => world.json(failurePath(KEY)));
    await world.settle(world.other.delete(paths.request(first)));
    await runFor(world, 10 * MINUTE);
    world.clock.jump(-DAYS);
    await runFor(world, 10 * MINUTE);
    const counts = counting(world);
    const id = await world.ask();
    await runFor(world, 6 * HOUR);
    expect(counts.records).toBeGreaterThanOrEqual(60);
    expect(counts.records).toBeLessThanOrEqual(160);
    expect(counts.writes).toBeLessThanOrEqual(2_400);
    world.cloud.adjust({ ...world.cloud.knobs, capacity: {} });
    await served(world, id, 6 * MINUTE);
  });

  test("back, and another launcher starts: it waits no longer than a breaker may be open", async () => {
    const world = new World(NO_ROOM);
    const { launcher, tree } = await world.start("a", config);
    const id = await world.ask();
    await world.until("the breaker is open", () => world.json(failurePath(KEY)));
    await world.settle(launcher.close());
    await world.settle(tree.close());
    world.clock.jump(-DAYS);
    world.cloud.adjust({ ...world.cloud.knobs, capacity: {} });
    await world.start("b", config);
    await served(world, id, 6 * MINUTE);
  });

  test.each(BOTH_WAYS)("%s, while a label's budget is spent: it drains as before", async (_, ms) => {
    const world = new World({ availabilityZones: ["az1"] });
    world.cloud.faults.createFails = Number.POSITIVE_INFINITY;
    await world.start("a", launcherConfig([fakeProvider("cloud")], { failedLaunchesPerHour: 2 }));
    const ids: string[] = [];
    for (let count = 0; count < 3; count++) ids.push(await world.ask({ node_types: ["small"] }));
    const spent = () =>
      (world.json(failurePath(labelKey("small")))?.spent as { level: number } | undefined)?.level;
    await world.until("the budget is spent", () => (spent() ?? 0) > 1);
    world.clock.jump(ms);
    const counts = counting(world);
    await runFor(world, 10 * MINUTE);
    const asked = await world.ask();
    world.cloud.faults.createFails = 0;
    expect(await served(world, asked, 2 * HOUR)).toBeGreaterThan(MINUTE);
    // Those of a launcher in half an hour, and of a few nodes. Planned again and again, a request makes a record twice a second.
    expect(counts.writes).toBeLessThanOrEqual(400);
  });

  test.each(BOTH_WAYS)(
    "%s, while a deletion is backed off: it is tried again as soon as before",
    async (_, ms) => {
      const world = new World();
      await world.start("a", config);
      const id = await world.ask();
      const { nodes } = await world.fulfilled(id);
      const [node] = nodes as [string];
      world.cloud.faults.deleteFails = Number.POSITIVE_INFINITY;
      await world.settle(world.other.delete(paths.request(id)));
      await world.put(paths.node(node), { ...world.node(node), state: "used" });
      await runFor(world, 4 * MINUTE);
      world.clock.jump(ms);
      await runFor(world, 6 * MINUTE);
      world.cloud.faults.deleteFails = 0;
      await world.until("it is deleted", () => world.nodes().length === 0, 40 * MINUTE);
    },
  );

  test.each(BOTH_WAYS)(
    "%s, while a node waits to be too old: it becomes so, not two days later",
    async (_, ms) => {
      const world = new World();
      const labels = new Map([["small", { name: "small", minReady: 1, maxReadyAgeMs: HOUR }]]);
      await world.start("a", launcherConfig([fakeProvider()], { labels }));
      const [idle] = await world.until("an idle node", () => {
        const ready = world.nodes().filter(({ state, allocated_to }) => state === "ready" && !allocated_to);
        return ready.length > 0 && ready.map(({ id }) => id);
      });
      world.clock.jump(ms);
      await runFor(world, 70 * MINUTE);
      expect(world.node(idle!)).toBeUndefined();
    },
  );

  test.each(BOTH_WAYS)(
    "%s, while a client has a lease: it lasts as long as it was asked for",
    async (_, ms) => {
      const { world, lease } = await leased();
      await world.until("it is granted", () => lease() === "granted");
      world.clock.jump(ms);
      await expectLeasedForAnHour(world, lease);
    },
  );

  test.each(BOTH_WAYS)(
    "%s, and a client asks for a lease before it is known which time is right: it lasts as long as it was asked for",
    async (_, ms) => {
      const { world, lease } = await leased(ms);
      await world.until("it is granted", () => lease() === "granted");
      await expectLeasedForAnHour(world, lease);
    },
  );
});

test("a launcher whose clock is set during its start ends no lease before it has the tree's time", async () => {
  const { world, lease } = await leased();
  await runFor(world, MINUTE);
  let jumped = 0;
  const clock: Clock = {
    now: () => world.clock.now() + jumped,
    monotonic: () => world.clock.monotonic(),
    setTimer: (ms, fn) => world.clock.setTimer(ms, fn),
  };
  const { starting } = world.launch("b", config, { clock });
  const announced = () =>
    world.cluster.log.some(
      ({ client, ops }) => client === "b" && ops.some(({ path }) => path.startsWith(paths.components)),
    );
  // The answer to this write, which tells by how much the clocks differ, is on its way.
  while (!announced()) await world.run(0.25);
  jumped = DAYS;
  await world.settle(starting);
  await expectLeasedForAnHour(world, lease);
});
