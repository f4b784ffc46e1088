import { INSTANT } from "@nodeyard/driver-fake";
import { BUDGETS, failurePath, labelKey, offeringKey, paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

/** So that there is one offering: each zone has its own breaker. */
const ONE_ZONE = { availabilityZones: ["az1"] };
const RETRIES = { "launch-retries": 3 };

async function asked(world: World, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.push(await world.ask());
  return ids;
}

/** Counts the creates that the cloud is asked for. */
function counting() {
  const counter = {
    creates: 0,
    wrap: withMethods((inner) => ({
      create: (order, step) => {
        counter.creates++;
        return inner.create(order, step);
      },
    })),
  };
  return counter;
}

describe("a label that never boots", () => {
  test("takes few creates whatever is asked, in the end is declined, and works again by itself", async () => {
    const counter = counting();
    const world = new World(ONE_ZONE);
    world.cloud.faults.createFails = Number.POSITIVE_INFINITY;
    const { launcher } = await world.start("a", launcherConfig([fakeProvider("cloud", RETRIES)]), {
      wrap: counter.wrap,
    });
    // One after the other for an hour, as a client that tries again does.
    let failed = 0;
    for (let minute = 0; minute < 60; minute++) {
      const id = await world.ask();
      await world.run(60_000);
      if (world.request(id)?.state === "failed") failed++;
      else expect(launcher.verdict(id)?.code).toMatch(/^offering\./);
    }
    expect(failed).toBeGreaterThan(30);
    expect(counter.creates).toBeLessThanOrEqual(60);
    const { request } = paths;
    for (const id of world.children(paths.requests)) await world.settle(world.other.delete(request(id)));
    world.cloud.faults.createFails = 0;
    await world.run(300_000);
    await world.fulfilled(await world.ask());
    const key = offeringKey({ provider: "cloud", az: "az1", type: "small" });
    await world.until("the failures are forgotten", () => world.text(failurePath(key)) === undefined);
  });

  test("stays within its budget even when a crowd starts together, over all its places", async () => {
    const counter = counting();
    const slow = { minMs: 5_000, maxMs: 20_000 };
    const world = new World({ latency: { ...INSTANT.latency, create: slow } });
    world.cloud.faults.createFails = Number.POSITIVE_INFINITY;
    // Two providers of two zones each: four places.
    const providers = [fakeProvider("cloud", RETRIES), fakeProvider("other", RETRIES)];
    const config = launcherConfig(providers, { failedLaunchesPerHour: 10 });
    const { counters } = await world.start("a", config, { wrap: counter.wrap });
    const ids = await asked(world, 60);
    await world.run(60_000);
    expect(counter.creates).toBe(10);
    expect(counters.value("launcher.launches")).toBe(counter.creates);
    // Nothing has worked anywhere: clients hear of it, but for the few that try what drains.
    await world.run(3_600_000 - 60_000);
    expect(counter.creates).toBeLessThanOrEqual(20);
    expect(ids.filter((id) => world.request(id)?.state === "failed").length).toBe(ids.length);
    await world.until("nothing is left", () => world.nodes().length === 0);
  });

  test("stays within it over all launchers together, and each of them says so", async () => {
    const counter = counting();
    const slow = { minMs: 5_000, maxMs: 20_000 };
    const world = new World({ latency: { ...INSTANT.latency, create: slow } });
    world.cloud.faults.createFails = Number.POSITIVE_INFINITY;
    const config = launcherConfig([fakeProvider("cloud", RETRIES)], { failedLaunchesPerHour: 10 });
    for (const name of ["a", "b", "c"]) await world.start(name, config, { wrap: counter.wrap });
    await asked(world, 90);
    await world.run(60_000);
    expect(counter.creates).toBe(10);
    const launches = world.members.map(({ counters }) => counters.value("launcher.launches"));
    expect(launches.filter((count) => count > 0).length).toBeGreaterThan(1);
    for (const { counters } of world.members)
      expect(counters.value("launcher.label_budgets", { label: "small", change: "spent" })).toBe(1);
    const hours = 2;
    for (let minute = 0; minute < 60 * hours; minute++) {
      await world.ask();
      await world.run(60_000);
    }
    // What drains; and it is used, lest a label that was mended stays out for ever.
    expect(counter.creates).toBeLessThanOrEqual(10 + 10 * hours);
    expect(counter.creates).toBeGreaterThan(10 + hours);
  });

  test("of which one launch went well at one launcher is held up at none, and costs no record", async () => {
    const counter = counting();
    const world = new World({
      ...ONE_ZONE,
      latency: { ...INSTANT.latency, create: { minMs: 100, maxMs: 900 } },
    });
    world.cloud.faults.createFails = 3;
    const config = launcherConfig([fakeProvider("cloud", RETRIES)], { failedLaunchesPerHour: 6 });
    for (const name of ["a", "b", "c"]) await world.start(name, config, { wrap: counter.wrap });
    const ids = await asked(world, 30);
    for (const id of ids) await world.fulfilled(id, 30_000);
    expect(counter.creates).toBe(33);
    await world.until("the record is gone", () => world.children("/nodeyard/budgets").length === 0);
    const writes = world.cluster.log.flatMap(({ ops }) => ops).filter(({ path }) => path.startsWith(BUDGETS));
    await asked(world, 30);
    await world.run(5_000);
    expect(world.cloud.inspect()).toHaveLength(60);
    const after = world.cluster.log.flatMap(({ ops }) => ops).filter(({ path }) => path.startsWith(BUDGETS));
    expect(after).toHaveLength(writes.length);
  });

  test("is held up no longer at a launcher that has seen only another's launch go well", async () => {
    const boot = (ms: number) => ({ ...INSTANT.latency, boot: { minMs: ms, maxMs: ms } });
    const world = new World({ ...ONE_ZONE, latency: boot(10_000) });
    for (const name of ["cloud", "other"])
      await world.start(name, launcherConfig([fakeProvider(name, RETRIES)], { failedLaunchesPerHour: 4 }));
    await world.ask({ provider: "cloud" });
    await world.until("the first boots", () => world.cloud.inspect().length === 1);
    world.cloud.adjust({ ...world.cloud.knobs, latency: boot(60_000) });
    for (let count = 0; count < 20; count++) await world.ask({ provider: "other" });
    await world.run(5_000);
    expect(world.cloud.inspect()).toHaveLength(4);
    await world.run(10_000);
    expect(world.cloud.inspect()).toHaveLength(21);
  });

  test("a restart does not begin it again", async () => {
    const counter = counting();
    const world = new World(ONE_ZONE);
    world.cloud.faults.createFails = Number.POSITIVE_INFINITY;
    const config = launcherConfig([fakeProvider("cloud", RETRIES)], { failedLaunchesPerHour: 10 });
    for (let day = 0; day < 5; day++) {
      const { launcher } = await world.start(`a${day}`, config, { wrap: counter.wrap });
      await asked(world, 20);
      await world.run(30_000);
      await world.settle(launcher.close());
    }
    expect(counter.creates).toBeLessThanOrEqual(10);
  });

  test("is counted though the tree loses every third answer", async () => {
    const counter = counting();
    const world = new World({
      ...ONE_ZONE,
      latency: { ...INSTANT.latency, create: { minMs: 100, maxMs: 900 } },
    });
    world.cloud.faults.createFails = Number.POSITIVE_INFINITY;
    let writes = 0;
    world.fault = ({ kind, ops }) =>
      kind === "write" && ops.some(({ path }) => path.startsWith(`${BUDGETS}/`)) && ++writes % 3 === 0
        ? "lose-reply"
        : undefined;
    const config = launcherConfig([fakeProvider("cloud", RETRIES)], { failedLaunchesPerHour: 10 });
    for (const name of ["a", "b", "c"]) await world.start(name, config, { wrap: counter.wrap });
    await asked(world, 60);
    await world.run(60_000);
    expect(writes).toBeGreaterThan(6);
    expect(counter.creates).toBeLessThanOrEqual(10);
    expect(counter.creates).toBeGreaterThan(7);
  });

  test("an invalid record of it stops no launch", async () => {
    const world = new World(ONE_ZONE);
    await world.put(failurePath(labelKey("small")), "nonsense");
    await world.put(`${BUDGETS}/what is this`, { v: 7 });
    world.cloud.faults.createFails = 1;
    const { counters } = await world.start("a", launcherConfig([fakeProvider("cloud", RETRIES)]));
    await world.fulfilled(await world.ask());
    expect(counters.value("view.records_skipped", { kind: "budget" })).toBeGreaterThan(0);
  });

  test("is tried again at once when a new configuration has a larger one", async () => {
    const counter = counting();
    const world = new World(ONE_ZONE);
    world.cloud.faults.createFails = Number.POSITIVE_INFINITY;
    const providers = [fakeProvider("cloud", RETRIES)];
    const small = launcherConfig(providers, { failedLaunchesPerHour: 4 });
    const { launcher } = await world.start("a", small, { wrap: counter.wrap });
    await asked(world, 3);
    await world.run(20_000);
    const waiting = await world.ask();
    await world.run(60_000);
    expect(launcher.verdict(waiting)?.code).toBe("offering.budget");
    expect(counter.creates).toBe(4);
    world.cloud.faults.createFails = 0;
    await world.settle(launcher.reconfigure(small));
    await world.run(10_000);
    expect(counter.creates).toBe(4);
    await world.settle(launcher.reconfigure(launcherConfig(providers, { failedLaunchesPerHour: 60 })));
    await world.fulfilled(waiting, 10_000);
  });

  test("its record is deleted after a day without a launch", async () => {
    const world = new World(ONE_ZONE);
    const budget = { label: "small", spent: { level: 3, at: world.clock.now() }, failures: 3, since: 1 };
    await world.put(failurePath(labelKey("small")), { v: 1, ...budget, kind: "timeout", error: "no answer" });
    await world.start("a", launcherConfig([fakeProvider()]));
    await world.run(23 * 3_600_000);
    expect(world.children(BUDGETS)).toHaveLength(1);
    await world.run(2 * 3_600_000);
    expect(world.children(BUDGETS)).toEqual([]);
  });

  test("and one that works is not held up by it, nor after a restart", async () => {
    const boot = { minMs: 10_000, maxMs: 10_000 };
    const world = new World({ latency: { ...INSTANT.latency, boot } });
    const config = launcherConfig([fakeProvider("cloud", RETRIES)], { failedLaunchesPerHour: 4 });
    const first = await world.start("a", config);
    const ids = await asked(world, 40);
    await world.run(5_000);
    expect(world.cloud.inspect()).toHaveLength(4);
    // The others begin as soon as one of the four has gone well.
    for (const id of ids) await world.fulfilled(id, 20_000);
    await world.settle(first.launcher.close());
    await world.start("b", config);
    await asked(world, 40);
    await world.run(5_000);
    expect(world.cloud.inspect()).toHaveLength(80);
  });

  test("stock of it is not asked for again and again", async () => {
    const counter = counting();
    const world = new World(ONE_ZONE);
    world.cloud.faults.createFails = Number.POSITIVE_INFINITY;
    const labels = new Map([
      ["small", { name: "small", minReady: 2, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
    ]);
    await world.start("a", launcherConfig([fakeProvider("cloud", RETRIES)], { labels }), {
      wrap: counter.wrap,
    });
    await world.run(3_600_000);
    expect(counter.creates).toBeLessThanOrEqual(60);
    world.cloud.faults.createFails = 0;
    await world.until(
      "there is stock",
      () => world.nodes().filter(({ state }) => state === "ready").length === 2,
      600_000,
    );
  });
});
