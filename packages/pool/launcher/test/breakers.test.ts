import { DriverError, type Provider } from "@nodeyard/driver";
import { decodeFailures, failurePath, offeringKey, paths, probePath } from "@nodeyard/model";
import type { CallInfo, Fault } from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const key = (provider: string, type = "small") => offeringKey({ provider, az: "az1", type });
/** So that there is one offering: each zone has its own breaker. */
const ONE_ZONE = { availabilityZones: ["az1"] };
const RETRIES = { "launch-retries": 3 };

const breakerOf = (world: World, name = key("cloud")) => {
  const data = world.cluster.znodes.data(failurePath(name));
  return data === undefined ? undefined : decodeFailures(name, data);
};

async function asked(world: World, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.push(await world.ask());
  return ids;
}

/** Creates that fail, with an error of this kind. */
const refusing = (kind: () => DriverError["kind"]): Pick<Provider, "create"> => ({
  async *create() {
    yield { step: "server", deadlineMs: 1_000 };
    throw new DriverError(kind(), "no");
  },
});

describe("an offering without room", () => {
  test("the request goes to the next provider in the same plan; the first is not asked again before its time", async () => {
    const world = new World(ONE_ZONE);
    // "full" comes first, and has no room in any zone.
    const full = fakeProvider("full", { priority: 1, ...RETRIES });
    const config = launcherConfig([full, fakeProvider("cloud")]);
    const { counters, journal } = await world.start("a", config, {
      wrap: withMethods((_, { name }) => (name === "full" ? refusing(() => "capacity") : {})),
    });
    const ids = await asked(world, 4);
    const served = [];
    for (const id of ids) served.push(await world.fulfilled(id, 10_000));
    for (const { nodes, declined_by } of served) {
      expect((nodes as string[]).map((id) => world.node(id)?.provider)).toEqual(["cloud"]);
      expect(declined_by ?? []).toEqual([]);
    }
    expect(counters.value("launcher.launches", { provider: "full" })).toBeLessThanOrEqual(ids.length);
    expect(counters.value("launcher.breakers", { provider: "full", change: "opened" })).toBe(1);
    expect(journal.events.filter(({ event }) => event === "offering.closed")).toHaveLength(1);
    const before = counters.value("launcher.launches", { provider: "full" });
    await world.fulfilled(await world.ask(), 5_000);
    expect(counters.value("launcher.launches", { provider: "full" })).toBe(before);
  });

  test("without another one the request waits and says until when; then one tries, and all go on", async () => {
    const world = new World({ ...ONE_ZONE, capacity: { az1: 0 } });
    const { launcher } = await world.start("a", launcherConfig([fakeProvider("cloud", RETRIES)]));
    const ids = await asked(world, 3);
    await world.until("the breaker is open", () => breakerOf(world));
    await world.run(2_000);
    for (const id of ids) {
      expect(world.request(id)).toMatchObject({ state: "requested" });
      expect(launcher.verdict(id)).toMatchObject({
        code: "offering.failing",
        facts: { kind: "capacity", label: "small" },
        nextTry: breakerOf(world)!.pause!.until,
      });
    }
    world.cloud.adjust({ ...world.cloud.knobs, capacity: {} });
    for (const id of ids) await world.fulfilled(id);
    expect(breakerOf(world)).toBeUndefined();
    expect(world.children(failurePath(key("cloud")))).toEqual([]);
  });

  test("in one zone: the nodeset goes to another zone as a whole, in the same plan", async () => {
    const world = new World({ capacity: { az1: 0 } });
    const { counters } = await world.start("a", launcherConfig([fakeProvider("cloud", RETRIES)]));
    for (let count = 0; count < 4; count++) {
      const { nodes, declined_by } = await world.fulfilled(
        await world.ask({ node_types: ["small", "small"] }),
        5_000,
      );
      expect((nodes as string[]).map((id) => world.node(id)?.az)).toEqual(["az2", "az2"]);
      expect(declined_by ?? []).toEqual([]);
    }
    expect(counters.value("launcher.launches", { result: "capacity" })).toBeLessThanOrEqual(2);
  });

  test("a provider that is refused: its requests wait with the reason, and none fails", async () => {
    const world = new World(ONE_ZONE);
    const { launcher, counters } = await world.start("a", launcherConfig([fakeProvider("cloud", RETRIES)]));
    world.cloud.faults.refused = Number.POSITIVE_INFINITY;
    const ids = await asked(world, 5);
    await world.until("the breaker is open", () => breakerOf(world));
    await world.run(600_000);
    for (const id of ids) expect(world.request(id)).toMatchObject({ state: "requested" });
    expect(launcher.verdict(ids[4]!)).toMatchObject({ code: "offering.failing", facts: { kind: "access" } });
    expect(counters.value("launcher.launches", { result: "access" })).toBeLessThan(20);
    world.cloud.faults.refused = 0;
    for (const id of ids) await world.fulfilled(id, 300_000);
  });

  test("a type that one zone never has is made in another; one that no zone has ends its request at once", async () => {
    const world = new World();
    const without = new Set(["az1"]);
    const { counters } = await world.start("a", launcherConfig([fakeProvider("cloud", RETRIES)]), {
      wrap: withMethods((inner) => ({
        async *create(order, step) {
          if (without.has(order.az ?? "")) throw new DriverError("unsupported", "not in this zone");
          return yield* inner.create(order, step);
        },
      })),
    });
    for (let count = 0; count < 4; count++) {
      const { nodes } = await world.fulfilled(await world.ask(), 5_000);
      expect((nodes as string[]).map((id) => world.node(id)?.az)).toEqual(["az2"]);
    }
    expect(counters.value("launcher.launches", { result: "unsupported" })).toBeLessThanOrEqual(1);
    without.add("az2");
    const id = await world.ask({ node_types: ["large"] });
    await world.until("it has failed", () => world.request(id)?.state === "failed", 5_000);
  });

  test("other labels of the pool go on", async () => {
    const world = new World(ONE_ZONE);
    const broken = withMethods((inner) => ({
      create(order, step) {
        if (order.label.name === "large") world.cloud.faults.createFails = 1;
        return inner.create(order, step);
      },
    }));
    await world.start("a", launcherConfig([fakeProvider()]), { wrap: broken });
    for (let count = 0; count < 6; count++) await world.ask({ node_types: ["large"] }, "050");
    await world.until("large is not launched", () => breakerOf(world, key("cloud", "large")));
    await world.fulfilled(await world.ask({ node_types: ["small"] }), 5_000);
  });
});

describe("several launchers", () => {
  test("one launcher's result stops the others from trying; one alone tries again, and its death during the try blocks none of them", async () => {
    const world = new World({ ...ONE_ZONE, capacity: { az1: 0 } });
    const slow = fakeProvider("cloud", RETRIES);
    const [a, b] = [
      await world.start("a", launcherConfig([slow])),
      await world.start("b", launcherConfig([slow])),
    ];
    const ids = await asked(world, 6);
    await world.until("the breaker is open", () => breakerOf(world));
    await world.run(1_000);
    const launches = () => a.counters.value("launcher.launches") + b.counters.value("launcher.launches");
    const before = launches();
    // Both wait; at the time for a try the cloud hangs.
    world.cloud.adjust({
      ...world.cloud.knobs,
      latency: { ...world.cloud.knobs.latency, create: { minMs: 20_000, maxMs: 20_000 } },
    });
    const prober = await world.until("one tries", () => world.json(probePath(key("cloud")))?.request);
    await world.run(1_000);
    expect(launches()).toBe(before);
    expect(world.nodes().filter(({ state }) => state === "building")).toHaveLength(1);
    const codes = ids.map((id) => (a.launcher.verdict(id) ?? b.launcher.verdict(id))?.code);
    expect(ids).toContain(prober);
    expect(
      codes.filter((code) => code === "offering.trying" || code === "offering.failing").length,
    ).toBeGreaterThan(0);
    const [tries, other] = world.node(world.nodes()[0]!.id)?.launcher?.toString().startsWith("a")
      ? [a, b]
      : [b, a];
    // kill -9: only the end of its session tells.
    tries.tree.crash();
    await world.settle(world.other.delete(paths.request(String(prober))));
    world.cloud.adjust({
      ...world.cloud.knobs,
      capacity: {},
      latency: { ...world.cloud.knobs.latency, create: { minMs: 0, maxMs: 0 } },
    });
    expect(other.launcher).toBeDefined();
    for (const id of ids) if (id !== prober) await world.fulfilled(id, 120_000);
    expect(breakerOf(world)).toBeUndefined();
  });

  const probe = probePath(key("cloud"));
  const ends = (call: CallInfo) => call.ops.some(({ op, path }) => op === "delete" && path === probe);
  const begins = (call: CallInfo) => call.ops.some(({ op, path }) => op === "create" && path === probe);
  test.each<{
    what: string;
    strikes: (call: CallInfo) => boolean;
    losses: number;
    fault: Fault;
    limitMs: number;
  }>([
    { what: "the end of it, once", strikes: ends, losses: 1, fault: "lose-request", limitMs: 1_000 },
    { what: "the end of it, and again", strikes: ends, losses: 2, fault: "lose-request", limitMs: 90_000 },
    { what: "the answer to its begin", strikes: begins, losses: 1, fault: "lose-reply", limitMs: 90_000 },
  ])("a try of a launcher that lives on holds up nobody when it is over: $what is lost", async (lost) => {
    const world = new World({ ...ONE_ZONE, capacity: { az1: 0 } });
    await world.start("a", launcherConfig([fakeProvider("cloud", RETRIES)]));
    const first = await world.ask();
    await world.until("the breaker is open", () => breakerOf(world));
    world.cloud.adjust({ ...world.cloud.knobs, capacity: {} });
    let left = lost.losses;
    world.fault = (call) => (left > 0 && lost.strikes(call) && left-- > 0 ? lost.fault : undefined);
    const prober = await world.until("it is tried", () => world.json(probe)?.request);
    expect(prober).toBe(first);
    if (lost.strikes === ends) await world.fulfilled(first);
    await world.settle(world.other.delete(paths.request(first)));
    await world.until("nobody tries", () => world.text(probe) === undefined, lost.limitMs);
    expect(left).toBe(0);
    // The idle node of the first is used: the second has to be launched, and finds out that the offering works.
    await world.fulfilled(await world.ask({ node_types: ["small", "small"] }), 30_000);
    await world.until("the breaker is closed", () => breakerOf(world) === undefined, 1_000);
  });

  test("a try that tells nothing of the offering, since there was no quota, leaves its place to the next at once", async () => {
    const world = new World(ONE_ZONE);
    let kind: DriverError["kind"] = "capacity";
    const { journal } = await world.start("a", launcherConfig([fakeProvider("cloud", RETRIES)]), {
      wrap: withMethods(() => refusing(() => kind)),
    });
    await world.ask();
    await world.until("the breaker is open", () => breakerOf(world));
    kind = "quota";
    await world.until("it is tried", () => world.json(probe)?.request);
    const refused = () =>
      journal.events.some(({ event, facts }) => event === "node.launch-failed" && facts?.kind === "quota");
    await world.until("the try is refused", refused);
    await world.until("nobody tries", () => world.text(probe) === undefined, 1_000);
  });

  test("a try that meets an error that may pass goes on with its next attempt, and nothing closes for longer", async () => {
    const world = new World(ONE_ZONE);
    const kinds: DriverError["kind"][] = ["capacity", "transient"];
    const { journal } = await world.start("a", launcherConfig([fakeProvider("cloud", RETRIES)]), {
      wrap: withMethods((provider) => ({
        async *create(order, step) {
          const kind = kinds.shift();
          if (kind === undefined) return yield* provider.create(order, step);
          yield { step: "server", deadlineMs: 1_000 };
          throw new DriverError(kind, "no");
        },
      })),
    });
    // 15 s, by 40 % more or fewer; a second closing would be twice as long.
    await world.fulfilled(await world.ask(), 25_000);
    expect(kinds).toEqual([]);
    expect(journal.events.filter(({ event }) => event === "offering.closed")).toHaveLength(1);
  });

  test("failures that are outweighed by successes spend no budget; others do", async () => {
    for (const every of [4, 1.25]) {
      const world = new World(ONE_ZONE);
      let calls = 0;
      const config = launcherConfig([fakeProvider("cloud", { "launch-retries": 9 })], {
        failedLaunchesPerHour: 3,
      });
      const { journal } = await world.start("a", config, {
        wrap: withMethods((provider) => ({
          async *create(order, step) {
            calls++;
            yield { step: "server", deadlineMs: 1_000 };
            if (calls % every < 1) throw new DriverError("transient", "one of several");
            return yield* provider.create(order, step);
          },
        })),
      });
      const closed = () => journal.events.some(({ event }) => event === "offering.closed");
      for (let n = 0; n < 20; n++) {
        const id = await world.ask();
        if (every > 2) await world.fulfilled(id, 60_000);
      }
      if (every < 2) await world.until("the budget is spent", closed, 600_000);
      else expect(closed()).toBe(false);
    }
  });

  test("an invalid record stops no launch", async () => {
    const world = new World(ONE_ZONE);
    await world.put(failurePath(key("cloud")), "nonsense");
    await world.put(failurePath("what is this"), { v: 7 });
    const { counters } = await world.start("a", launcherConfig([fakeProvider()]));
    await world.fulfilled(await world.ask());
    expect(counters.value("view.records_skipped", { kind: "breaker" })).toBeGreaterThan(0);
  });
});
