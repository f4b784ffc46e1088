import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { fakeProvider, type Json, launcherConfig, staticProvider, World } from "./world.ts";

/** Longer than two sweeps with their jitter. */
const TWO_SWEEPS = 160_000;
const HOUR = 3_600_000;

/** What others may make of a node's record, from its text as it was. */
const SHAPES: Readonly<Record<string, (record: Json) => string | Uint8Array>> = {
  "no JSON": () => "nonsense",
  "half of it": (record) => JSON.stringify(record).slice(0, -5),
  "no data": () => "",
  "an array": (record) => JSON.stringify([record]),
  "a state that nobody knows": (record) => JSON.stringify({ ...record, state: "verifying" }),
  "a number as provider": (record) => JSON.stringify({ ...record, provider: 7 }),
  "a number as request": (record) => JSON.stringify({ ...record, allocated_to: 7 }),
  "no fields": () => "{}",
  "no UTF-8": (record) =>
    Buffer.concat([
      Buffer.from(`${JSON.stringify(record).slice(0, -1)}, "comment": "`),
      Buffer.from([0xff, 0xfe, 0x22, 0x7d]),
    ]),
};

async function spoil(world: World, id: string, shape: string): Promise<string> {
  const before = world.text(paths.node(id))!;
  const data = SHAPES[shape]!(JSON.parse(before) as Json);
  await world.settle(world.other.set(paths.node(id), typeof data === "string" ? Buffer.from(data) : data));
  return before;
}

const board = {
  name: "127.0.0.1",
  labels: ["small"],
  "host-key-checking": false,
  "host-key": "ssh-ed25519 AAAA",
};

for (const when of ["seen before", "new to the launcher"]) {
  describe(`rule 6: a node whose record cannot be read, ${when}`, () => {
    const begin = async (config: ReturnType<typeof launcherConfig>, shape: string) => {
      const world = new World();
      const first = await world.start("a", config);
      const request = await world.ask();
      const [id] = (await world.fulfilled(request)).nodes as string[];
      await world.lock(paths.nodeLock(id!));
      await world.settle(world.other.delete(paths.request(request)));
      await world.put(paths.node(id!), { ...world.node(id!), state: "in-use" });
      if (when !== "seen before") await world.settle(first.launcher.close(0));
      const before = await spoil(world, id!, shape);
      const member = when === "seen before" ? first : await world.start("b", config);
      return { world, id: id!, before, ...member };
    };

    for (const shape of Object.keys(SHAPES)) {
      test(`${shape}: its machine stays until it is repaired and returned, and so does what leaked meanwhile`, async () => {
        const { world, id, before, log, counters } = await begin(launcherConfig([fakeProvider()]), shape);
        await world.machine("leak", { nodeId: "0000000900" });
        await world.run(3 * TWO_SWEEPS);
        expect(
          world.cloud
            .inspect()
            .map((machine) => machine.tag?.nodeId)
            .sort(),
        ).toEqual([id, "0000000900"]);
        expect(counters.value("launcher.sweeps_suspended", { provider: "cloud" })).toBeGreaterThan(1);
        const said = log.lines.filter(({ text }) => text.includes("deletes nothing while"));
        expect(said.map(({ facts }) => facts)).toEqual([{ provider: "cloud", records: [paths.node(id)] }]);
        await world.put(paths.node(id), before);
        await world.run(2 * TWO_SWEEPS);
        expect(world.cloud.inspect().map((machine) => machine.tag?.nodeId)).toEqual([id]);
      });

      test(`${shape}: its static host is not given away`, async () => {
        const { world, id, before } = await begin(launcherConfig([staticProvider([board])]), shape);
        const second = await world.ask();
        await world.run(3 * TWO_SWEEPS);
        expect(world.request(second)?.state).toBe("requested");
        expect(world.children(paths.nodes)).toEqual([id]);
        await world.put(paths.node(id), before);
        await world.run(TWO_SWEEPS);
        expect(world.children(paths.nodes)).toEqual([id]);
      });

      test(`${shape}: it counts for the limits of its pool`, async () => {
        const config = launcherConfig([fakeProvider("cloud", {}, { "max-servers": 1 })]);
        const { world, id, launcher } = await begin(config, shape);
        const second = await world.ask();
        await world.run(3 * TWO_SWEEPS);
        expect(world.children(paths.nodes)).toEqual([id]);
        expect(world.json("/nodeyard/limits/cloud/main")).toMatchObject({ instances: 1 });
        expect(launcher.verdict(second)).toMatchObject({ code: "capacity.pool", facts: { unreadable: 1 } });
      });
    }

    test("its ledger is counted anew no lower", async () => {
      const config = launcherConfig([fakeProvider("cloud", {}, { "max-servers": 1 })]);
      const { world, id } = await begin(config, "no JSON");
      await world.settle(world.other.delete("/nodeyard/limits/cloud/main"));
      await world.ask();
      await world.run(3 * TWO_SWEEPS);
      expect(world.children(paths.nodes)).toEqual([id]);
    });

    test("what cannot be its provider's goes on as ever", async () => {
      const config = launcherConfig([fakeProvider(), fakeProvider("other")]);
      const { world } = await begin(config, "a state that nobody knows");
      await world.machine("leak", { nodeId: "0000000900", provider: "other" });
      await world.run(2 * TWO_SWEEPS);
      expect(world.cloud.inspect().map((machine) => machine.tag?.nodeId)).not.toContain("0000000900");
    });
  });
}

test("rule 6: a free node whose record cannot be read by the time it is locked costs its request nothing", async () => {
  const world = new World();
  const { counters } = await world.start(
    "a",
    launcherConfig([fakeProvider("cloud", {}, { "max-servers": 2 })]),
  );
  const free = await world.makeNode({ state: "ready", type: ["small"], provider: "cloud", pool: "main" });
  await world.run(100);
  let spoilt = false;
  world.fault = ({ kind, path }) => {
    if (kind === "write" && path.startsWith(paths.nodeLock(free)) && !spoilt) {
      spoilt = true;
      void world.other.set(paths.node(free), Buffer.from("nonsense"));
    }
    return undefined;
  };
  const { nodes } = await world.fulfilled(await world.ask());
  expect(spoilt).toBe(true);
  expect(nodes).not.toContain(free);
  expect(counters.value("launcher.unexpected", { place: "handler" })).toBe(0);
});

describe("rule 6: the lock of a request that cannot be read", () => {
  test("stands as long as the request does, and a live contender for ever", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider("cloud", { "max-concurrency": 0 })]));
    const spoilt = await world.ask({ state: "pending" });
    const locks = [spoilt, "100-0000000900"].map((id) => paths.requestLock(id));
    for (const lock of locks) await world.contend(lock);
    await world.put(paths.request(spoilt), "nonsense");
    await world.folder(paths.requestLock("100-0000000901"));
    await world.run(9 * HOUR);
    expect(locks.map((lock) => world.children(lock).length)).toEqual([1, 1]);
    expect(world.children(paths.requestsLock)).not.toContain("100-0000000901");
  });

  test("a ready node that was given to it is not given to another", async () => {
    const world = new World();
    const { counters } = await world.start("a", launcherConfig([fakeProvider()]));
    const request = await world.ask();
    const [id] = (await world.fulfilled(request)).nodes as string[];
    await world.put(paths.request(request), "[]");
    await world.run(TWO_SWEEPS);
    expect(world.node(id!)).toMatchObject({ state: "ready", allocated_to: request });
    expect(counters.value("launcher.unexpected")).toBe(0);
  });
});

test("rule 6: the lock of a request that cannot be read stays, and that of one that is gone goes after eight hours", async () => {
  const world = new World();
  const [unreadable, gone] = ["100-0000000001", "100-0000000002"];
  await world.put(paths.request(unreadable), "nonsense");
  for (const id of [unreadable, gone]) await world.folder(paths.requestLock(id));
  await world.start("a", launcherConfig([fakeProvider()]));
  await world.run(8 * HOUR + TWO_SWEEPS);
  expect(world.children(paths.requestsLock)).toEqual([unreadable]);
});
