import type { ProviderConfig } from "@nodeyard/driver";
import { staticConfig } from "@nodeyard/driver-static";
import { type Lease, leasePath, leaseRequestor, type Pairing, paths } from "@nodeyard/model";
import { askForNodes, releaseLease } from "@nodeyard/operations";
import { seededRandom } from "@nodeyard/runtime";
import type { Fault } from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import { contendersOf, handles } from "./rules/lease-world.ts";
import { expectClean, LOSSES, ReplyDroppingProxy, VICTIM } from "./rules/lost-writes.ts";
import { fakeProvider, launcherConfig, staticProvider, World } from "./rules/world.ts";

/** By then launchers have reported what their pools offer, milliseconds. */
const REPORTED_MS = 2_000;

const host = (name: string, label: string) => ({
  name,
  labels: [label],
  "host-key-checking": false,
  "host-key": "ssh-ed25519 AAAA",
});
const LABEL = { "cloud-image": "image", "flavor-name": "Fake Flavor" };
/** A cloud for `large`, whose pool has these keys. */
const cloud = (pool: object = {}, name = "cloud") =>
  fakeProvider(name, {}, { labels: [{ name: "large", ...LABEL }], ...pool });
/** A pool of one board for each rack. */
const racks = (...all: readonly string[]): ProviderConfig => {
  const pools = all.map((rack, index) => ({
    name: `rack-${rack}`,
    "node-attributes": { rack, zone: `az${index + 1}` },
    nodes: [host(`127.0.0.${index + 1}`, "small")],
  }));
  const report = ({ message }: { readonly message: string }) => {
    throw new Error(message);
  };
  const context = { labels: new Set(["small"]), diskimages: new Map(), report };
  return staticConfig.load({ name: "lab", driver: "static", pools }, context)!;
};

interface Wish {
  readonly labels?: readonly string[];
  readonly same?: readonly Pairing[];
  readonly forMs?: number;
  readonly tenant?: string;
}

let asked = 0;
function ask(world: World, { labels = ["large", "small"], same = [], forMs = 600_000, ...more }: Wish = {}) {
  const own = { ...handles(world), random: seededRandom(100 + asked++) };
  return world.settle(askForNodes(own, { labels, same, owner: "me", forMs, ...more }));
}
const leaseOf = (world: World, { id }: Lease) => world.json(leasePath(id)) as Lease | undefined;
const isIn = (world: World, lease: Lease, state: string) => () => leaseOf(world, lease)?.state === state;
const granted = (world: World, lease: Lease) => world.until("it is granted", isIn(world, lease, "granted"));
/** Waits until a set has the nodes of a label. */
const holds = (world: World, lease: Lease, label: string) =>
  world.until(`${label} is held`, () =>
    leaseOf(world, lease)?.set?.parts.find((part) => part.label === label && part.nodes.length > 0),
  );
const release = (world: World, { id }: Lease) => world.settle(releaseLease(handles(world), id));

describe("a mixed set", () => {
  test("gets nodes of several providers, in the order of its labels, each held by the lease", async () => {
    const world = new World();
    const { journal } = await world.start(
      "a",
      launcherConfig([cloud(), staticProvider([host("127.0.0.1", "small")])]),
    );
    await world.run(REPORTED_MS);
    const lease = await ask(world, { labels: ["large", "small", "large"] });
    expect(lease.state).toBe("gathering");
    await granted(world, lease);
    const { nodes } = leaseOf(world, lease)!;
    expect(nodes.map((id) => [world.node(id)?.provider, world.node(id)?.state])).toEqual([
      ["cloud", "in-use"],
      ["lab", "in-use"],
      ["cloud", "in-use"],
    ]);
    for (const id of nodes)
      expect(contendersOf(world, id).map((path) => world.text(path))).toEqual([leaseRequestor(lease.id)]);
    expect(world.children(paths.requests)).toEqual([]);
    await world.run(100);
    const told = journal.events
      .filter(({ event }) => event.startsWith("lease."))
      .map(({ event, facts }) => [event, facts.label]);
    // What there is least of comes first.
    expect(told).toEqual([
      ["lease.held", "small"],
      ["lease.granted", undefined],
    ]);
    await release(world, lease);
    await world.until("its nodes are given back", () => leaseOf(world, lease) === undefined);
    await world.until("no machine is left", () => world.cloud.inspect().length === 0);
  });

  test("launches nothing while what there is least of is used, and explain says which part the others wait for", async () => {
    const world = new World();
    await world.start("a", launcherConfig([cloud(), staticProvider([host("127.0.0.1", "small")])]));
    await world.run(REPORTED_MS);
    const job = await world.ask();
    await world.fulfilled(job);
    const lease = await ask(world);
    await world.until("the board is asked for", () => world.children(paths.requests).length === 2);
    await world.run(1_000);
    expect(world.cloud.inspect()).toEqual([]);
    const { waits_for, about } = await world.explain("lease", lease.id);
    expect(waits_for).toMatchObject({ code: "nodes.none-free", facts: { part: "small", held: [] } });
    expect(waits_for?.meaning).toMatch(/^Its part small: /);
    expect(about.parts).toEqual([
      { label: "large", state: "next", nodes: [] },
      { label: "small", state: "asked", nodes: [] },
    ]);
    await world.use(job);
    await granted(world, lease);
  });

  test("fails with the reason when a node that it holds was deleted by hand", async () => {
    const world = new World();
    await world.start(
      "a",
      launcherConfig([cloud({ "max-servers": 1 }), staticProvider([host("127.0.0.1", "small")])]),
    );
    const job = await world.ask({ node_types: ["large"] });
    await world.fulfilled(job);
    await world.run(REPORTED_MS);
    const lease = await ask(world);
    const [board] = (await holds(world, lease, "small")).nodes;
    const lock = paths.nodeLock(board!);
    for (const name of world.children(lock)) await world.settle(world.other.delete(`${lock}/${name}`));
    await world.settle(world.other.delete(lock));
    await world.settle(world.other.delete(paths.node(board!)));
    await world.until("it failed", isIn(world, lease, "failed"));
    expect(leaseOf(world, lease)?.why).toBe(`node ${board}, which it held, is gone`);
  });

  test("fails whole when a part can never be had, and gives back the others", async () => {
    const world = new World();
    await world.start("a", launcherConfig([staticProvider([host("127.0.0.1", "small")])]));
    await world.run(REPORTED_MS);
    const [board] = await world.until(
      "the board is registered",
      () => world.nodes().length === 1 && world.nodes(),
    );
    await world.run(REPORTED_MS);
    const lease = await ask(world, { labels: ["small", "nowhere"] });
    await world.until("it failed", isIn(world, lease, "failed"));
    expect(leaseOf(world, lease)?.why).toBe("no pool could serve nowhere");
    // What may be had nowhere is asked for first.
    expect(
      world.cluster.log.filter(({ ops }) =>
        ops.some(({ path }) => path.startsWith(paths.nodeLock(board!.id))),
      ),
    ).toEqual([]);
    await world.until("the board is free", () =>
      world.nodes().every(({ state, allocated_to: to }) => state === "ready" && to === null),
    );
    await release(world, lease);
    await world.until("it is gone", () => leaseOf(world, lease) === undefined);
  });

  test("gives back what it holds when a later part is declined", async () => {
    const world = new World();
    await world.start(
      "a",
      launcherConfig([cloud({ "max-servers": 0 }), staticProvider([host("127.0.0.1", "small")])]),
    );
    await world.run(REPORTED_MS);
    const lease = await ask(world);
    await holds(world, lease, "small");
    await world.until("it failed", isIn(world, lease, "failed"));
    await world.until("nothing is held", () =>
      leaseOf(world, lease)?.set?.parts.every(({ nodes }) => nodes.length === 0),
    );
    expect(leaseOf(world, lease)?.why).toBe("no pool could serve large");
    // Free, or offered again under another id: while the lease still stands.
    await world.until("the board is free", () => {
      const nodes = world.nodes();
      return (
        nodes.length === 1 && nodes[0]!.state === "ready" && contendersOf(world, nodes[0]!.id).length === 0
      );
    });
  });

  test("ends at its time with what it holds by then, and when its client gives it up", async () => {
    const world = new World({ capacity: { az1: 0, az2: 0 } });
    await world.start("a", launcherConfig([cloud(), staticProvider([host("127.0.0.1", "small")])]));
    await world.run(REPORTED_MS);
    for (const ends of [true, false]) {
      const lease = await ask(world, { forMs: ends ? 20_000 : 600_000 });
      await holds(world, lease, "small");
      if (!ends) await release(world, lease);
      await world.until("it is gone", () => leaseOf(world, lease) === undefined);
      await expectClean(world, "all is free", { idle: 1 });
    }
  });
});

describe("pairing rules", () => {
  test("choose pools and zones that agree, for what is launched and for what is there", async () => {
    const world = new World();
    const zoned = cloud({ "availability-zones": ["az1", "az2"] });
    await world.start("a", launcherConfig([zoned, racks("1", "2")]));
    await world.run(REPORTED_MS);
    const all = [await ask(world, { same: [{ fact: "zone", labels: [] }] })];
    await granted(world, all[0]!);
    all.push(await ask(world, { same: [{ fact: "zone", labels: ["small", "large"] }] }));
    await granted(world, all[1]!);
    const zones = all.map((lease) =>
      leaseOf(world, lease)!.nodes.map((id) => {
        const { az, attributes } = world.node(id)!;
        return (attributes as { zone?: string } | null)?.zone ?? az;
      }),
    );
    expect(zones.map(([vm, board]) => vm === board)).toEqual([true, true]);
    expect(zones.map(([vm]) => vm).sort()).toEqual(["az1", "az2"]);
  });

  test("reserve nothing where only the other rack has a board, and let a set wait for the right one", async () => {
    const world = new World();
    const near = cloud({ "node-attributes": { rack: "2" } });
    await world.start("a", launcherConfig([near, racks("1", "2")]));
    await world.run(REPORTED_MS);
    const same = [{ fact: "rack", labels: [] }];
    const [first, second] = [await ask(world, { same }), await ask(world, { same })];
    await granted(world, first);
    await world.run(20_000);
    // The board of rack 1 is free, and is no use.
    expect(leaseOf(world, second)?.set?.parts.flatMap(({ nodes }) => nodes)).toEqual([]);
    await release(world, first);
    await granted(world, second);
    expect(leaseOf(world, second)!.nodes.map((id) => world.node(id)?.attributes)).toEqual([
      { rack: "2" },
      { rack: "2", zone: "az2" },
    ]);
  });

  test("that can never be met fail the set at once, with the reason, before anything is reserved", async () => {
    const world = new World();
    const far = cloud({ "node-attributes": { rack: "9" } });
    await world.start("a", launcherConfig([far, racks("1", "2")]));
    await world.run(REPORTED_MS);
    const lease = await ask(world, { same: [{ fact: "rack", labels: [] }] });
    await world.until("it failed", isIn(world, lease, "failed"), 1_000);
    expect(leaseOf(world, lease)?.why).toBe("its nodes cannot be of the same rack (large: 9; small: 1, 2)");
    expect(
      world.cluster.log.filter(({ ops }) => ops.some(({ path }) => path.startsWith(`${paths.requests}/`))),
    ).toEqual([]);
    const { about, next } = await world.explain("lease", lease.id);
    expect([about.failed_because, next]).toEqual([
      expect.stringContaining("same rack"),
      expect.stringContaining("same rack"),
    ]);
  });

  test("are judged when a part is there that a pool without facts gave, as those of Nodepool's launchers", async () => {
    const world = new World();
    await world.start("a", launcherConfig([racks("1")]));
    await world.run(REPORTED_MS);
    await world.pythonPool("py", ["large"]);
    const lease = await ask(world, { same: [{ fact: "rack", labels: [] }] });
    const [request] = await world.until("large is asked for", () => {
      const ids = world.children(paths.requests);
      return ids.length === 1 && ids;
    });
    const id = await world.makeNode({
      state: "ready",
      provider: "py",
      type: ["large"],
      allocated_to: request,
    });
    await world.put(paths.request(request!), { ...world.request(request!), state: "fulfilled", nodes: [id] });
    await world.until("it failed", isIn(world, lease, "failed"));
    expect(leaseOf(world, lease)?.why).toBe("large came from a pool of another rack");
    await world.until("nothing is held", () =>
      world.nodes().every((node) => contendersOf(world, node.id).length === 0),
    );
    // It has failed before anything is given back: until then another launcher may grant it with these nodes.
    const writes = world.cluster.log.map(({ ops }) => ops.map(({ op, path }) => `${op} ${path}`));
    const failed = writes.findIndex((ops) => ops.includes(`delete ${paths.request(request!)}`));
    const isOfNode = (ops: readonly string[]) => ops.includes(`set ${paths.node(id)}`);
    expect(writes.slice(0, failed).filter(isOfNode).length).toBe(1);
    expect(writes.slice(failed).filter(isOfNode).length).toBe(1);
  });

  test("hold where a pool of the label that reports nothing serves it, beside pools that cannot", async () => {
    const world = new World();
    const far = cloud({ "node-attributes": { rack: "9" } });
    await world.start("a", launcherConfig([far, racks("1")]));
    await world.pythonPool("py", ["large"]);
    await world.run(REPORTED_MS);
    const lease = await ask(world, { same: [{ fact: "rack", labels: [] }] });
    await holds(world, lease, "small");
    const [request] = await world.until("large is asked for", () => {
      const ids = world.children(paths.requests);
      return ids.length === 1 && ids;
    });
    await world.run(1_000);
    expect(world.cloud.inspect()).toEqual([]);
    const attributes = { rack: "1" };
    const more = { provider: "py", type: ["large"], attributes, allocated_to: request };
    const id = await world.makeNode({ state: "ready", ...more });
    await world.put(paths.request(request!), { ...world.request(request!), state: "fulfilled", nodes: [id] });
    await granted(world, lease);
    expect(leaseOf(world, lease)?.nodes[0]).toBe(id);
  });
});

describe("two sets", () => {
  const boards = staticProvider([host("127.0.0.1", "small"), host("127.0.0.2", "large")]);

  test("that want the same boards in opposite order follow each other, whatever is written when", async () => {
    for (const pause of [0, 3, 6, 9, 12, 20, 50]) {
      const world = new World();
      for (const name of ["a", "b"]) await world.start(name, launcherConfig([boards]));
      await world.until("the boards are registered", () => world.nodes().length === 2);
      const one = await ask(world, { labels: ["small", "large"] });
      await world.run(pause);
      const two = await ask(world, { labels: ["large", "small"] });
      const first = await world.until("one is granted", () =>
        [one, two].find((lease) => leaseOf(world, lease)?.state === "granted"),
      );
      const second = first === one ? two : one;
      // The other holds neither: it waits for the board that all sets ask for first.
      expect(leaseOf(world, second)?.set?.parts.flatMap(({ nodes }) => nodes)).toEqual([]);
      await release(world, first);
      await granted(world, second);
      await release(world, second);
      await expectClean(world, "all is free", { idle: 2 });
    }
  });

  test("of a tenant with too small a limit do not block each other: the younger gives back what it holds", async () => {
    const world = new World();
    const limited = { tenantLimits: new Map([["t", { instances: 4 }]]) };
    const providers = [cloud(), staticProvider([host("127.0.0.1", "small"), host("127.0.0.2", "small")])];
    const { journal } = await world.start("a", launcherConfig(providers, limited));
    await world.run(REPORTED_MS);
    await world.until("the boards are registered", () => world.nodes().length === 2);
    // Another node of the tenant keeps both from their second parts.
    const job = await world.ask({ node_types: ["large", "large"], tenant_name: "t" });
    await world.fulfilled(job);
    const older = await ask(world, { tenant: "t", labels: ["large", "large", "small"] });
    const younger = await ask(world, { tenant: "t" });
    await holds(world, older, "small");
    await holds(world, younger, "small");
    await world.until("the younger gives way", () =>
      journal.events.find(({ event }) => event === "lease.yielded"),
    );
    await world.run(30_000);
    expect(
      journal.events.filter(({ event }) => event === "lease.yielded").map(({ facts }) => facts.to),
    ).toEqual([older.id]);
    const { waits_for } = await world.explain("lease", younger.id);
    expect(waits_for).toMatchObject({ code: "set.behind", facts: { sets: [older.id] } });
    await world.use(job);
    await granted(world, older);
    await release(world, older);
    await granted(world, younger);
  });
});

describe("whatever is lost", () => {
  /** A set that is asked for, granted, used and given back, while `fault` strikes. */
  async function life(
    fault: (world: World) => (call: Parameters<World["fault"]>[0]) => Fault,
    patienceMs: number,
  ) {
    const world = new World();
    const config = launcherConfig([cloud(), staticProvider([host("127.0.0.1", "small")])]);
    for (const name of [VICTIM, "launcher-b"]) await world.start(name, config);
    await world.run(REPORTED_MS);
    world.fault = fault(world);
    const lease = await ask(world);
    await world.until(
      "it is granted or failed",
      () => /granted|failed/.test(leaseOf(world, lease)?.state ?? ""),
      patienceMs,
    );
    const { state, nodes } = leaseOf(world, lease)!;
    expect(nodes.length).toBe(state === "granted" ? 2 : 0);
    await release(world, lease);
    return world;
  }

  test("of one write, its answer or all of it, the set is delivered whole or not at all, and nothing is left", async () => {
    for (const loss of LOSSES)
      for (let at = 1; ; at++) {
        const proxy = new ReplyDroppingProxy(at, loss);
        const world = await life(() => proxy.fault, 60_000);
        if (proxy.struck === undefined) break;
        await expectClean(world, `${loss} of write ${at}: ${proxy.struck}`, { idle: 1 });
      }
  });

  test("a launcher dies at each of its writes, and another one goes on", async () => {
    for (const loss of LOSSES)
      for (let at = 1; ; at++) {
        const proxy = new ReplyDroppingProxy(at, loss);
        const dies =
          (world: World) =>
          (call: Parameters<World["fault"]>[0]): Fault => {
            const before = proxy.struck;
            const fault = proxy.fault(call);
            // A message that was sent before still arrives.
            if (before === undefined && proxy.struck !== undefined) world.members[0]!.tree.crash();
            return fault === "lose-request" ? fault : undefined;
          };
        const world = await life(dies, 120_000);
        if (proxy.struck === undefined) break;
        await world.until(
          `${loss} of write ${at}: ${proxy.struck}`,
          () => world.children("/nodeyard/leases").length === 0,
          120_000,
        );
        await world.until(
          `${loss} of write ${at}: ${proxy.struck}: the board is free`,
          () =>
            world.nodes().length === 1 &&
            world.nodes().every(({ state, id }) => state === "ready" && contendersOf(world, id).length === 0),
          120_000,
        );
      }
  });
});
