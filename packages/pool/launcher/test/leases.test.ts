import { encodeLease, LEASES, leasePath, paths } from "@nodeyard/model";
import { askForNodes, releaseLease } from "@nodeyard/operations";
import { describe, expect, test } from "vitest";
import { contendersOf, foreignNode, handles, isHold } from "./rules/lease-world.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

/** Which write of all deleted a znode; -1: none. */
const deletion = (world: World, path: string) =>
  world.cluster.log.findIndex(({ ops }) => ops.some((op) => op.op === "delete" && op.path === path));

const inUse = (data: Uint8Array) => Buffer.from(data).includes('"in-use"');

describe("leases", () => {
  test("end with their request in the journal, even when the client died before it wrote which", async () => {
    const world = new World({ capacity: { az1: 0, az2: 0 } });
    const { journal } = await world.start("a", launcherConfig([fakeProvider()]));
    const own = handles(world);
    const asked = await world.settle(askForNodes(own, { labels: ["small"], owner: "me", forMs: 60_000 }));
    const { request, ...half } = asked;
    await world.settle(world.other.set(leasePath(asked.id), encodeLease({ ...half, request: null })));
    await world.settle(releaseLease(own, asked.id));
    await world.until("it ended", () => world.json(leasePath(asked.id)) === undefined);
    await world.run(1_000);
    const ended = journal.events.find(({ event }) => event === "lease.ended");
    expect(ended).toMatchObject({ request, facts: { lease: asked.id, why: "released" } });
    // Its request first: without the lease, a machine could still be launched for it, and nobody would use that.
    expect(deletion(world, paths.request(request!))).toBeGreaterThan(0);
    expect(deletion(world, paths.request(request!))).toBeLessThan(deletion(world, leasePath(asked.id)));
  });

  test("keep fields that a later release wrote, byte for byte, through every change", async () => {
    const world = new World();
    const tree = world.cluster.connect({ name: "cli", sessionTimeoutMs: 10_000 });
    const own = handles(world, tree);
    const news = '"later": {"n": 12345678901234567890, "n": [1.0]}';
    const more = (id: string) => {
      const text = world.text(leasePath(id))!;
      return world.settle(world.other.set(leasePath(id), Buffer.from(text.replace(/}$/, `, ${news}}`))));
    };
    const writes: string[] = [];
    world.fault = ({ ops }) => {
      for (const op of ops)
        if (op.op === "set" && op.path.startsWith("/nodeyard/leases/"))
          writes.push(Buffer.from(op.data).toString());
      return undefined;
    };
    const [first, second] = await world.settle(
      Promise.all(
        [60_000, 5_000].map((forMs) => askForNodes(own, { labels: ["small"], owner: "me", forMs })),
      ),
    );
    await more(first!.id);
    await more(second!.id);
    writes.length = 0;
    await world.start("a", launcherConfig([fakeProvider()]));
    const state = (id: string) => world.json(leasePath(id))?.state;
    await world.until("both are granted", () => [first!, second!].every(({ id }) => state(id) === "granted"));
    await world.settle(releaseLease(own, first!.id));
    await world.until("both ended", () => state(first!.id) === undefined && state(second!.id) === undefined);
    expect(writes.map((text) => /"state":"(\w+)"/.exec(text)?.[1]).sort()).toEqual([
      "granted",
      "granted",
      "released",
      "released",
    ]);
    for (const text of writes) expect(text).toContain(news);
  });

  test("fail with their request", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    const impossible = { labels: ["nothing"], owner: "me", forMs: 60_000 };
    const { id } = await world.settle(askForNodes(handles(world), impossible));
    await world.until("it failed", () => world.json(leasePath(id))?.state === "failed", 30_000);
  });

  test("leave no request behind when they are gone, also when the event was lost", async () => {
    const world = new World();
    const left = await world.ask({ state: "fulfilled", nodes: [], requestor: "Nodeyard:lease:aaaaaaaaaaaa" });
    await world.start("a", launcherConfig([fakeProvider()]));
    await world.until("it is taken back", () => world.request(left) === undefined, 90_000);
  });

  test("that ended before their request was seen leave no node held", async () => {
    const world = new World();
    const config = launcherConfig([fakeProvider()]);
    await world.start("a", config);
    const b = await world.start("b", config);
    const own = handles(world);
    b.tree.freeze();
    world.fault = ({ client, kind, path, ops }) => {
      if (client === "a" && ops.some((op) => op.op === "set" && inUse(op.data))) return { delayMs: 5_000 };
      // A launcher that stood still reads the lease first, as it is now, and only then the request.
      return client === "b" && kind === "get" && path.startsWith(`${paths.requests}/`)
        ? { delayMs: 100 }
        : undefined;
    };
    const asked = await world.settle(askForNodes(own, { labels: ["small"], owner: "me", forMs: 60_000 }));
    const hold = () =>
      world
        .nodes()
        .flatMap(({ id }) => contendersOf(world, id))
        .find((path) => world.text(path) === `Nodeyard:lease:${asked.id}`);
    const contender = await world.until("a is about to hold a node", hold);
    const id = contender.split("/")[3]!;
    expect(world.node(id)).toMatchObject({ state: "ready", allocated_to: asked.request });
    await world.settle(releaseLease(own, asked.id));
    b.tree.thaw();
    await world.until("the lease ended", () => world.json(leasePath(asked.id)) === undefined);
    const free = () => world.node(id)?.allocated_to === null && contendersOf(world, id).length === 0;
    await world.until("the node, which nobody had, is free", free, 10_000);
    expect(world.request(asked.request!)).toBeUndefined();
    // Its node first: without the request, nothing leads there but the slow resync.
    expect(deletion(world, contender)).toBeGreaterThan(0);
    expect(deletion(world, contender)).toBeLessThan(deletion(world, paths.request(asked.request!)));
    expect(b.log.lines.map(({ text }) => text)).toContain("deleted a request whose lease is gone");
  });

  test("that are gone leave no ready node held, also when its request is gone", async () => {
    const world = new World();
    const config = launcherConfig([fakeProvider()]);
    await world.start("a", config);
    const request = await world.ask({ requestor: "zuul" });
    const { nodes } = await world.fulfilled(request);
    const [id] = nodes as [string];
    const lease = "Nodeyard:lease:aaaaaaaaaaaa";
    await world.contend(paths.nodeLock(id), Buffer.from(lease));
    await world.put(paths.node(id), { ...world.node(id), requestor: lease });
    await world.settle(world.other.delete(paths.request(request)));
    await world.until("it is returned", () => world.node(id) === undefined, 90_000);
  });

  test("are not taken for gone by a launcher that sees their request, and their nodes, before them", async () => {
    const world = new World();
    const config = launcherConfig([fakeProvider()]);
    await world.start("a", config);
    await world.start("b", config);
    // B hears nothing of the lease before its next comparison. First of its request, then, when that is over, of its node.
    world.losesEvent = (client, path) => client === "b" && path.startsWith(`${LEASES}/`);
    const asked = await world.settle(
      askForNodes(handles(world), { labels: ["small"], owner: "me", forMs: 600_000 }),
    );
    const state = () => world.json(leasePath(asked.id))?.state;
    await world.until("it is granted", () => state() === "granted");
    await world.run(30_000);
    expect([state(), world.nodes().map((node) => node.state)]).toEqual(["granted", ["in-use"]]);
  });

  test("that are granted while they end are read again: the request may be seen to go before that", async () => {
    const { world, id, asked, fulfil } = await foreignNode({ launchers: ["a", "b"], forMs: 5_000 });
    const lease = leasePath(asked.id);
    // The second launcher hears of the grant at once, and reads it only when the lease's time is over.
    world.fault = ({ kind, path }) => (kind === "get" && path === lease ? { delayMs: 8_000 } : undefined);
    await fulfil();
    await world.until("it is granted", () => world.json(lease)?.state === "granted", 4_000);
    const { client } = world.cluster.log.findLast(({ ops }) => ops.some(({ path }) => path === lease))!;
    world.members.find(({ name }) => name === client)!.tree.freeze();
    await world.until("it ended", () => world.json(lease) === undefined);
    await world.run(1_000);
    expect(contendersOf(world, id)).toEqual([]);
    expect(world.node(id)?.state).toBe("used");
    const reported = world.members.flatMap(({ journal }) => journal.events);
    expect(reported.findLast(({ event }) => event === "lease.ended")?.facts).toMatchObject({
      why: "expired",
    });
  });

  test("are marked as over before their nodes are searched, so that a holder that is about to lock one does not", async () => {
    const { world, id, asked, fulfil } = await foreignNode({ launchers: ["a", "b"], forMs: 5_000 });
    const lease = leasePath(asked.id);
    let slow = 0;
    // Both are longer than whoever finds the node locked waits before its next look, which may be the one that ends the lease.
    world.fault = ({ ops }) => {
      if (ops.some((op) => op.op === "delete" && op.path === lease)) return { delayMs: 12_000 };
      return ops.some((op) => op.op === "create" && isHold(op.data)) && slow++ === 0
        ? { delayMs: 16_000 }
        : undefined;
    };
    await fulfil();
    await world.until("its request is taken back", () => world.request(asked.request!) === undefined);
    expect([slow, contendersOf(world, id).filter((path) => isHold(world.text(path)))]).toEqual([1, []]);
    await world.until("it ended", () => world.json(lease) === undefined);
    await world.run(1_000);
    expect(contendersOf(world, id)).toEqual([]);
    expect(world.node(id)?.state).toBe("ready");
  });
});
