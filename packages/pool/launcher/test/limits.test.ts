import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

async function asked(world: World, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let number = 0; number < count; number++) ids.push(await world.ask());
  return ids;
}

describe("limits of several launchers", () => {
  test("a ready node that is given to a tenant counts, and no longer when it is taken back", async () => {
    const limits = { tenantLimits: new Map([["t1", { instances: 2 }]]) };
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()], limits));
    const first = await world.ask({ tenant_name: "t2" });
    await world.fulfilled(first);
    // It goes without its node, which is then free for everyone.
    await world.settle(world.other.delete(paths.request(first)));
    await world.until("the node is free", () =>
      world.nodes().every(({ allocated_to }) => allocated_to === null),
    );
    const second = await world.ask({ tenant_name: "t1" });
    await world.fulfilled(second);
    expect(world.nodes()).toHaveLength(1);
    expect(world.json("/nodeyard/limits/@tenant/t1")).toMatchObject({ instances: 1 });
    await world.settle(world.other.delete(paths.request(second)));
    await world.until(
      "nothing of it counts",
      () => world.json("/nodeyard/limits/@tenant/t1")?.instances === 0,
    );
  });
});

describe("no more is launched than was asked for", () => {
  test("min-ready of three launchers: as many as wanted, by one of them", async () => {
    const labels = new Map([
      ["small", { name: "small", minReady: 5, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
    ]);
    const config = launcherConfig([fakeProvider()], { labels });
    const world = new World();
    for (const name of ["a", "b", "c"]) await world.start(name, config);
    await world.until(
      "they are ready",
      () => world.nodes().filter(({ state }) => state === "ready").length === 5,
    );
    await world.run(120_000);
    expect(world.nodes()).toHaveLength(5);
    expect(world.children(paths.requests)).toEqual([]);
    expect(Math.max(...world.nodes().map(({ id }) => Number(id)))).toBeLessThan(5);
  });
});

describe("a cloud that refuses for quota", () => {
  test("is not asked by everyone again and again, and all are served once it has room", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]), {
      // It lies about its quota, as clouds do whose limits are of a kind that they do not tell.
      wrap: withMethods(() => ({ quota: async () => ({ instances: 100 }) })),
    });
    world.cloud.adjust({ ...world.cloud.knobs, quota: { instances: 0 } });
    const ids = await asked(world, 20);
    const [{ counters, launcher }] = world.members as [(typeof world.members)[0]];
    const refused = () => counters.value("launcher.launches", { provider: "cloud", result: "quota" });
    await world.run(60_000);
    // 20 at once, then one at 2, 4, 8, 16 and 32 s.
    expect(refused()).toBeLessThanOrEqual(26);
    expect(ids.map((id) => launcher.verdict(id)?.code)).toContain("capacity.refused");
    world.cloud.adjust({ ...world.cloud.knobs, quota: {} });
    for (const id of ids) await world.fulfilled(id, 300_000);
  });
});

describe("what a launch is given", () => {
  test("one zone for the whole nodeset, in the records and in the cloud, another one for the next", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    const zones = [];
    for (let each = 0; each < 2; each++) {
      const { nodes } = await world.fulfilled(await world.ask({ node_types: ["small", "large", "small"] }));
      zones.push(new Set((nodes as string[]).map((id) => world.node(id)?.az)));
    }
    expect(zones).toEqual([new Set(["az1"]), new Set(["az2"])]);
    for (const { tag, az } of world.cloud.inspect()) expect(world.node(tag!.nodeId)?.az).toBe(az);
  });

  test("a zone without capacity: the whole nodeset goes to the other zone, and no machine is left behind", async () => {
    const world = new World({ capacity: { az1: 2 } });
    await world.start("a", launcherConfig([fakeProvider()]));
    const { nodes } = await world.fulfilled(
      await world.ask({ node_types: ["small", "small", "small"] }),
      60_000,
    );
    expect((nodes as string[]).map((id) => world.node(id)?.az)).toEqual(["az2", "az2", "az2"]);
    // Those that az1 had room for are ready and free: the next one takes them.
    const next = await world.fulfilled(await world.ask({ node_types: ["small", "small"] }));
    expect((next.nodes as string[]).map((id) => world.node(id)?.az)).toEqual(["az1", "az1"]);
  });

  test("the newest upload of its diskimage, which may come after the request", async () => {
    const booting = fakeProvider(
      "cloud",
      { diskimages: [{ name: "noble" }] },
      {
        labels: [{ name: "small", diskimage: "noble", "flavor-name": "Fake Flavor" }],
      },
    );
    const world = new World();
    const orders: unknown[] = [];
    const { launcher } = await world.start("a", launcherConfig([booting]), {
      wrap: withMethods((inner) => ({
        create(order, step) {
          orders.push(order.imageExternalId);
          return inner.create(order, step);
        },
      })),
    });
    const build = "b".repeat(32);
    await world.put(paths.imageBuild("noble", build), { state: "building", state_time: 1 });
    const id = await world.ask();
    await world.until("it waits", () => launcher.verdict(id)?.code === "image.waits");
    expect(launcher.verdict(id)?.facts).toMatchObject({ image: "noble", stage: "building" });
    const upload = paths.imageUpload("noble", build, "cloud", "0000000001");
    await world.put(paths.imageBuild("noble", build), { state: "ready", state_time: 2 });
    await world.put(upload, {
      state: "ready",
      state_time: 3,
      external_id: "cloud-image-7",
      username: "ubuntu",
      python_path: "/usr/bin/python3",
    });
    const { nodes } = await world.fulfilled(id);
    expect(orders).toEqual(["cloud-image-7"]);
    expect(world.node((nodes as string[])[0]!)).toMatchObject({
      image_id: upload,
      username: "ubuntu",
      python_path: "/usr/bin/python3",
    });
  });

  test("the upload that is there when its record is locked, however long the tree took to make it", async () => {
    const labels = [{ name: "small", diskimage: "noble", "flavor-name": "Fake Flavor" }];
    const world = new World();
    const upload = (number: number) =>
      paths.imageUpload("noble", "b".repeat(32), "cloud", `000000000${number}`);
    const record = (number: number) => ({
      state: "ready",
      state_time: number,
      external_id: `image-${number}`,
    });
    await world.put(paths.imageBuild("noble", "b".repeat(32)), { state: "ready", state_time: 1 });
    await world.put(upload(1), record(1));
    const makes = (op: { readonly op: string; readonly path: string }) =>
      op.op === "create" && op.path === `${paths.nodes}/`;
    let making = false;
    world.fault = ({ ops }) => {
      if (!ops.some(makes)) return undefined;
      making = true;
      return { delayMs: 1_000 };
    };
    const booting = fakeProvider("cloud", { diskimages: [{ name: "noble" }] }, { labels });
    await world.start("a", launcherConfig([booting]));
    const id = await world.ask();
    await world.until("its record is being made", () => making);
    await world.put(upload(2), record(2));
    await world.put(upload(1), { ...record(1), state: "deleting" });
    await world.fulfilled(id);
    const sets = world.cluster.log.flatMap(({ ops }) => ops.filter((op) => op.op === "set"));
    const building = sets.find(({ data }) => Buffer.from(data).includes('"building"'));
    expect(JSON.parse(Buffer.from(building!.data).toString()).image_id).toBe(upload(2));
  });

  test("nothing, if no builder makes its image: it fails with the reason", async () => {
    const booting = fakeProvider(
      "cloud",
      {},
      {
        labels: [{ name: "small", diskimage: "noble", "flavor-name": "Fake Flavor" }],
      },
    );
    const world = new World();
    const { journal } = await world.start("a", launcherConfig([booting]));
    const id = await world.ask();
    await world.until("it failed", () => world.request(id)?.state === "failed");
    const declined = () => journal.events.find(({ event }) => event === "request.declined");
    await world.until("it says so", () => declined() !== undefined);
    expect(declined()?.facts.reason).toMatch(/does not list diskimage noble/);
  });
});

test("a node whose record is too long for the tree fails its request, with the reason", async () => {
  const world = new World();
  // Each is short enough; the record of the node has both.
  const attributes = { text: "x".repeat(900_000) };
  const config = launcherConfig([
    fakeProvider("cloud", {}, { "max-servers": 2, "node-attributes": attributes }),
  ]);
  const { journal } = await world.start("a", config);
  const id = await world.ask({ requestor: "y".repeat(200_000) });
  await world.until("it failed", () => world.request(id)?.state === "failed");
  const declined = () => journal.events.find(({ event }) => event === "request.declined");
  await world.until("it says so", () => declined() !== undefined);
  expect(declined()?.facts.reason).toMatch(/bytes are more than the 1048575/);
});
