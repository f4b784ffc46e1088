import { type Driver, DriverError, decorate } from "@nodeyard/driver";
import { INSTANT } from "@nodeyard/driver-fake";
import { expect, test } from "vitest";
import { staticProvider } from "./rig.ts";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

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
      return decorate(provider, async (name, call) => {
        if (this.down && ["create", "list", "quota"].includes(name))
          throw new DriverError("transient", ERROR);
        return call();
      });
    },
  });
}

const config = launcherConfig([fakeProvider("cloud")]);

test("down while a request waits for quota: the verdict names the failing API, not the quota", async () => {
  const [world, api] = [new World({ quota: { instances: 1 } }), new Api()];
  await world.start("a", config, { wrap: api.wrap });
  await world.fulfilled(await world.ask());
  const waiting = await world.ask();
  await world.run(1_000);
  const before = await world.explain("request", waiting);
  expect(before.waits_for).toMatchObject({
    code: "capacity.provider",
    facts: { quota_read_at: expect.any(String) },
  });

  api.down = true;
  const since = world.clock.now();
  await world.run(60_000);
  const { waits_for, pools } = await world.explain("request", waiting);
  expect(waits_for).toMatchObject({ code: "provider.failing", source: "launcher", facts: { error: ERROR } });
  expect(waits_for?.meaning).toMatch(/API fails/);
  const failing = Date.parse(waits_for?.facts.failing_since as string);
  expect(failing).toBeGreaterThanOrEqual(since);
  expect(failing).toBeLessThanOrEqual(since + 40_000);
  expect(pools).toMatchObject([{ pool: "cloud/main", code: "provider.failing", position: 1, waiting: 1 }]);
  // Later it is the same failure.
  await world.run(120_000);
  expect((await world.explain("request", waiting)).waits_for?.facts.failing_since).toBe(
    waits_for?.facts.failing_since,
  );

  api.down = false;
  await world.run(60_000);
  expect((await world.explain("request", waiting)).waits_for?.code).toBe("capacity.provider");
});

test("down when the launcher starts: nothing is registered, and explain gives the reason and the next try", async () => {
  const [world, api] = [new World(), new Api()];
  api.down = true;
  await world.start("a", config, { wrap: api.wrap });
  const waiting = await world.ask();
  await world.run(1_000);
  const request = await world.explain("request", waiting);
  expect(request.waits_for).toMatchObject({
    code: "provider.failing",
    facts: { pool: "cloud/main", error: ERROR },
  });
  expect(Date.parse(request.waits_for!.next_try!)).toBeGreaterThan(Date.parse(request.waits_for!.since!));
  const label = await world.explain("label", "small");
  expect(label).toMatchObject({ state: "unserved", waits_for: { code: "provider.failing" } });
  api.down = false;
  await world.fulfilled(waiting);
});

test("down for minutes: the next try of what stands badly is never in the past, and known again after each try", async () => {
  const [world, api] = [new World(), new Api()];
  const wrap = (driver: Driver): Driver => ({
    ...driver,
    async open(own, context) {
      if (own.name === "shut") throw new DriverError("transient", ERROR);
      const provider = await api.wrap(driver).open(own, context);
      // Of one that has no quota to ask for, sweeps and launches alone meet the outage.
      return own.name === "list" ? { ...provider, quota: async () => ({}) } : provider;
    },
  });
  const hosts = staticProvider([{ name: "board", labels: ["small"] }]);
  const scan = { scan: () => Promise.reject(new DriverError("timeout", "it does not answer")) };
  const all = launcherConfig([...["cloud", "list", "shut"].map((name) => fakeProvider(name)), hosts]);
  const { launcher } = await world.start("a", all, { wrap, scan });
  await world.run(10_000);
  api.down = true;
  await world.run(300_000);
  const known = new Set<string>();
  for (let second = 0; second < 300; second++) {
    await world.run(1_000);
    for (const { id, nextTry } of launcher.view.standings.list()) {
      if (nextTry === null) continue;
      known.add(id);
      // A report is a moment on its way.
      expect(nextTry, id).toBeGreaterThan(world.clock.now() - 1_000);
    }
  }
  expect([...known].filter((id) => !id.startsWith("label/")).sort()).toEqual([
    "host/lab/zuul@board:22",
    "provider/cloud",
    "provider/lab",
    "provider/list",
    "provider/shut",
  ]);
});

test("down while launching: explain gives the failures of the offering", async () => {
  const [world, api] = [new World({ availabilityZones: ["az1"] }), new Api()];
  await world.start("a", config, { wrap: api.wrap });
  api.down = true;
  const ids: string[] = [];
  while (ids.length < 8) ids.push(await world.ask());
  await world.run(30_000);
  const label = await world.explain("label", "small");
  expect(label.waits_for).toMatchObject({
    code: "offering.failing",
    facts: { kind: "transient", error: ERROR, failing_since: expect.any(String) },
    next_try: expect.any(String),
  });
  expect(label.waits_for?.meaning).toMatch(/not for lack of quota/);
});

test("explain shows the step of a launch in progress, on the request and on the node", async () => {
  const world = new World({
    latency: { ...INSTANT.latency, create: { minMs: 10, maxMs: 10 }, boot: { minMs: 5_000, maxMs: 5_000 } },
  });
  await world.start("a", config);
  for (let seen = 0; seen < 3; seen++) await world.fulfilled(await world.ask());
  const id = await world.ask();
  await world.run(2_000);
  const request = await world.explain("request", id);
  expect(request.waits_for).toMatchObject({ code: "handling" });
  expect(request.steps).toMatchObject([{ of: "launch", seconds: null }]);
  // Launches were seen that took about five seconds, and two of them have passed.
  expect(request.estimate).toMatchObject({ pool: "cloud/main", launches: 3 });
  expect(request.estimate!.likely_seconds).toBeGreaterThan(1);
  expect(request.estimate!.likely_seconds).toBeLessThan(4.5);
  const node = await world.explain("node", request.steps[0]!.node);
  expect(node.waits_for).toMatchObject({ code: "node.launching", facts: { step: request.steps[0]!.step } });
});

test("down at run time, where the quota asks nothing: a launch that fails makes it show within seconds, and it goes when a list succeeds", async () => {
  const [world, api] = [new World(), new Api()];
  const { launcher } = await world.start(
    "a",
    launcherConfig([fakeProvider("cloud", {}, { "max-servers": 1 })]),
    {
      wrap: (driver) => withMethods(() => ({ quota: async () => ({}) }))(api.wrap(driver)),
    },
  );
  const failing = () => {
    const standing = launcher.view.standings.get("provider/cloud");
    return standing?.state === "failing" ? standing : null;
  };
  expect(failing()).toBeNull();
  api.down = true;
  const ids = [await world.ask(), await world.ask()];
  await world.until("it shows", () => failing()?.cause?.includes(ERROR), 15_000);
  expect(ids).toHaveLength(2);
  api.down = false;
  await world.until("it works again", () => failing() === null, 120_000);
});
