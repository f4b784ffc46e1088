import { failurePath, offeringKey, offeringTypeOf, priceOf } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const ONE_ZONE = { availabilityZones: ["az1"] };
const PRICES = { spot: 0.03, fixed: 0.1, dear: 0.5 };

/** A provider whose label `small` may be bought as each of these flavors. */
const sold = (offerings: readonly object[], fields: object = {}) =>
  fakeProvider(
    "cloud",
    { prices: PRICES, "launch-retries": 1, ...fields },
    {
      labels: [{ name: "small", "cloud-image": "image", "flavor-name": "fixed", offerings }],
    },
  );
const [spot, fixed, dear] = ["spot", "fixed", "dear"].map((name) => ({ "flavor-name": name }));

const record = (world: World, id: string) => ({ driverData: world.node(id)?.driver_data });

async function served(world: World): Promise<{ readonly type: string | undefined; readonly id: string }> {
  const { nodes } = await world.fulfilled(await world.ask(), 20_000);
  const [id] = nodes as string[];
  return { type: offeringTypeOf(record(world, id!)), id: id! };
}

describe("a label with several offerings", () => {
  test("is bought as the cheapest, and its record says as what and for how much", async () => {
    const world = new World(ONE_ZONE);
    await world.start("a", launcherConfig([sold([dear!, fixed!, spot!])]));
    const { type, id } = await served(world);
    expect(type).toBe("spot");
    expect(priceOf(record(world, id))).toEqual({ perHour: 0.03, currency: "USD" });
    expect(world.cloud.inspect().map((server) => server.type)).toEqual(["spot"]);
  });

  test("without room for one costs one launch of one node, and no request", async () => {
    const world = new World({ ...ONE_ZONE, capacity: { spot: 1 } });
    const { journal, counters } = await world.start("a", launcherConfig([sold([spot!, fixed!])]));
    expect((await served(world)).type).toBe("spot");
    const second = await served(world);
    expect(second.type).toBe("fixed");
    const names = journal.events.filter(({ node }) => node === second.id).map(({ event }) => event);
    expect(names.filter((name) => name === "node.launching")).toHaveLength(2);
    expect(names.filter((name) => name === "node.launch-failed")).toHaveLength(1);
    // Neither its request nor its record began anew, though it has one attempt only.
    expect(journal.events.filter(({ event }) => event === "request.put-back")).toEqual([]);
    expect(journal.events.filter(({ event }) => event === "node.created")).toHaveLength(2);
    // The others know of it.
    expect(
      world.cluster.znodes.data(failurePath(offeringKey({ provider: "cloud", az: "az1", type: "spot" }))),
    ).toBeDefined();
    expect((await served(world)).type).toBe("fixed");
    expect(counters.value("launcher.launches", { provider: "cloud", result: "capacity" })).toBe(1);
  });

  test("falls from one to the next until one has room; when none has, the request waits as for any label", async () => {
    const world = new World({ ...ONE_ZONE, capacity: { spot: 0, fixed: 0, dear: 1 } });
    const { journal } = await world.start("a", launcherConfig([sold([spot!, fixed!, dear!])]));
    expect((await served(world)).type).toBe("dear");
    const id = await world.ask();
    await world.until("the last offering has no room, too", () =>
      journal.events.some(({ event, request }) => event === "request.waits" && request === id),
    );
    world.cloud.adjust({ ...world.cloud.knobs, capacity: { spot: 0, dear: 0 } });
    const { nodes } = await world.fulfilled(id, 300_000);
    expect(offeringTypeOf(record(world, (nodes as string[])[0]!))).toBe("fixed");
  });

  test("without room for one has all of its attempts left for the next", async () => {
    const world = new World({ ...ONE_ZONE, capacity: { spot: 0 } });
    const { journal } = await world.start(
      "a",
      launcherConfig([sold([spot!, fixed!], { "launch-retries": 2 })]),
    );
    world.cloud.faults.endsInError = 1;
    expect((await served(world)).type).toBe("fixed");
    expect(journal.events.filter(({ event }) => event === "node.launch-failed")).toHaveLength(2);
  });

  test("a weight goes before a price", async () => {
    const world = new World(ONE_ZONE);
    await world.start("a", launcherConfig([sold([spot!, { ...dear, weight: 5 }])]));
    expect((await served(world)).type).toBe("dear");
  });
});
