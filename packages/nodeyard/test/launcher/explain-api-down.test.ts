import { type Driver, DriverError } from "@nodeyard/driver";
import { seededRandom } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { explain, queryMembers, type Story } from "../../src/operations/index.ts";
import { fakeProvider, launcherConfig, World } from "../rules/world.ts";

/** The complaint: "limits reached", while the cloud's API was down (karpenter-provider-aws#5937). */
const ERROR = "503 Service Unavailable";

/** A cloud whose API can be switched off. */
class Api {
  down = false;

  wrap = (driver: Driver): Driver => ({
    ...driver,
    open: async (config, context) => {
      if (this.down) throw new DriverError("transient", ERROR);
      const provider = await driver.open(config, context);
      const { create, list, quota } = {
        create: provider.create.bind(provider),
        list: provider.list.bind(provider),
        quota: provider.quota.bind(provider),
      };
      const check = () => {
        if (this.down) throw new DriverError("transient", ERROR);
      };
      provider.create = async function* (order, step) {
        check();
        return yield* create(order, step);
      };
      provider.list = async (signal) => {
        check();
        return list(signal);
      };
      provider.quota = async (signal) => {
        check();
        return quota(signal);
      };
      return provider;
    },
  });
}

async function reported(world: World, kind: Story["kind"], id: string): Promise<Story> {
  const handles = { tree: world.other, clock: world.clock, random: seededRandom(3) };
  const query = queryMembers(handles, () => ({ events: [], problem: "no journal" }));
  return (await world.settle(explain(handles, { kind, id }, query)))!;
}

const config = launcherConfig([fakeProvider("cloud")]);

test("down while a request waits for quota: the verdict names the failing API, not the quota", async () => {
  const [world, api] = [new World({ quota: { instances: 1 } }), new Api()];
  await world.start("a", config, { wrap: api.wrap });
  await world.fulfilled(await world.ask());
  const waiting = await world.ask();
  await world.run(1_000);
  const before = await reported(world, "request", waiting);
  expect(before.waitsFor).toMatchObject({
    code: "capacity.provider",
    facts: { quota_read_at: expect.any(Number) },
  });

  api.down = true;
  const since = world.clock.now();
  await world.run(60_000);
  const { waitsFor, pools } = await reported(world, "request", waiting);
  expect(waitsFor).toMatchObject({ code: "provider.failing", source: "launcher", facts: { error: ERROR } });
  expect(waitsFor?.meaning).toMatch(/API fails/);
  const failing = waitsFor?.facts.failing_since as number;
  expect(failing).toBeGreaterThanOrEqual(since);
  expect(failing).toBeLessThanOrEqual(since + 40_000);
  expect(pools).toMatchObject([{ pool: "cloud/main", code: "provider.failing", position: 1, waiting: 1 }]);
  // Later it is the same failure.
  await world.run(120_000);
  expect((await reported(world, "request", waiting)).waitsFor?.facts.failing_since).toBe(failing);

  api.down = false;
  await world.run(60_000);
  expect((await reported(world, "request", waiting)).waitsFor?.code).toBe("capacity.provider");
});

test("down when the launcher starts: nothing is registered, and explain gives the reason and the next try", async () => {
  const [world, api] = [new World(), new Api()];
  api.down = true;
  await world.start("a", config, { wrap: api.wrap });
  const waiting = await world.ask();
  await world.run(1_000);
  const request = await reported(world, "request", waiting);
  expect(request.waitsFor).toMatchObject({
    code: "provider.failing",
    facts: { pool: "cloud/main", error: ERROR },
  });
  expect(request.waitsFor!.nextTry!).toBeGreaterThan(request.waitsFor!.since!);
  const label = await reported(world, "label", "small");
  expect(label).toMatchObject({ state: "unserved", waitsFor: { code: "provider.failing" } });
  api.down = false;
  await world.fulfilled(waiting);
});

test("down while launching: the failures of the offering are reported as such", async () => {
  const [world, api] = [new World({ availabilityZones: ["az1"] }), new Api()];
  await world.start("a", config, { wrap: api.wrap });
  api.down = true;
  const ids: string[] = [];
  while (ids.length < 8) ids.push(await world.ask());
  await world.run(30_000);
  const label = await reported(world, "label", "small");
  expect(label.waitsFor).toMatchObject({
    code: "offering.failing",
    facts: { kind: "transient", error: ERROR, failing_since: expect.any(Number) },
    nextTry: expect.any(Number),
  });
  expect(label.waitsFor?.meaning).toMatch(/not for lack of quota/);
});

test("explain shows what is being done with a node, with its step", async () => {
  const world = new World({
    latency: {
      create: { minMs: 10, maxMs: 10 },
      boot: { minMs: 5_000, maxMs: 5_000 },
      delete: { minMs: 0, maxMs: 0 },
      read: { minMs: 0, maxMs: 0 },
    },
  });
  await world.start("a", config);
  for (let seen = 0; seen < 3; seen++) await world.fulfilled(await world.ask());
  const id = await world.ask();
  await world.run(2_000);
  const request = await reported(world, "request", id);
  expect(request.waitsFor).toMatchObject({ code: "handling" });
  expect(request.steps).toMatchObject([{ of: "launch", ms: null }]);
  // Launches were seen that took about five seconds, and two of them have passed.
  expect(request.estimate).toMatchObject({ pool: "cloud/main", launches: 3 });
  expect(request.estimate!.likelyMs).toBeGreaterThan(1_000);
  expect(request.estimate!.likelyMs).toBeLessThan(4_500);
  const node = await reported(world, "node", request.steps[0]!.node);
  expect(node.waitsFor).toMatchObject({ code: "node.launching", facts: { step: request.steps[0]!.step } });
});
