import { compareRequests } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { explain } from "../src/index.ts";
import { ShareQueue } from "../src/share-queue.ts";
import { Shares } from "../src/shares.ts";
import type { Waiting } from "../src/waits.ts";
import { picker, ShareWorld, weightsOf } from "./share-world.ts";
import { policy, pool, request } from "./world.ts";

const SEEDS = Array.from({ length: 10 }, (_, seed) => seed);

describe("under pressure", () => {
  test.each([true, false])("use comes to weighted max-min within one node, launched: %s", (launches) => {
    for (const seed of SEEDS) {
      const pick = picker(seed);
      const tenants = Array.from({ length: 2 + pick(4) }, (_, index) => `t${index}`);
      const weight = Object.fromEntries(tenants.map((tenant) => [tenant, 1 + pick(4)]));
      const size = 5 + pick(20);
      const world = new ShareWorld(size, weightsOf(weight), {
        launches,
        inventory: new Map([["small", size]]),
      });
      // The first tenant borrows all of it.
      world.ask(...Array.from({ length: size }, () => ({ tenant: tenants[0]! })));
      expect(world.used(tenants[0]!)).toBe(size);
      for (const tenant of tenants) world.ask(...Array.from({ length: 120 }, () => ({ tenant })));
      for (const borrowed of [...world.inUse.keys()]) world.giveBack(borrowed);
      for (let round = 0; round < 60; round++) {
        const load = (tenant: string, more = 0) => (world.used(tenant) + more) / weight[tenant]!;
        // Nobody has more than another one would have with one node more.
        const least = Math.min(...tenants.map((tenant) => load(tenant)));
        const above = tenants.filter((tenant) => load(tenant, -1) > least + 1e-9);
        expect([seed, round, above, world.inUse.size]).toEqual([seed, round, [], size]);
        world.giveBack([...world.inUse.keys()][pick(size)]!);
      }
    }
  });

  test.each([true, false])("what returns at the same moment is shared, too, launched: %s", (launches) => {
    const world = new ShareWorld(6, weightsOf({}), { launches, inventory: new Map([["small", 6]]) });
    for (const tenant of ["c", "a", "b"]) world.ask(...Array.from({ length: 6 }, () => ({ tenant })));
    world.giveBack(...world.inUse.keys());
    expect([world.used("a"), world.used("b")]).toEqual([3, 3]);
  });

  test("a tenant's part goes to its clients by their weights, and the tenant's other weight does not change", () => {
    const world = new ShareWorld(12, weightsOf({ a: 2, b: 1 }, { one: 3, two: 1 }));
    const ask = (tenant: string, client: string) =>
      world.ask(...Array.from({ length: 200 }, () => ({ tenant, client })));
    ask("a", "two");
    ask("a", "one");
    ask("b", "one");
    ask("b", "other");
    for (let round = 0; round < 50; round++) world.giveBack([...world.inUse.keys()][0]!);
    expect([world.used("a"), world.used("b")]).toEqual([8, 4]);
    const clients = new Map<string, number>();
    for (const id of world.inUse.values()) {
      const { tenant, client } = world.asked.get(id)!;
      clients.set(`${tenant} ${client}`, (clients.get(`${tenant} ${client}`) ?? 0) + 1);
    }
    expect(Object.fromEntries(clients)).toEqual({ "a one": 6, "a two": 2, "b one": 3, "b other": 1 });
  });

  test("priorities stay above shares", () => {
    const world = new ShareWorld(1, weightsOf({}));
    world.ask({ tenant: "a" });
    const [late] = world.ask({ tenant: "b", relative: 1 });
    const soon = world.ask({ tenant: "a" }, { tenant: "a" });
    for (let round = 0; round < 3; round++) world.giveBack([...world.inUse.keys()][0]!);
    expect(world.served.slice(1)).toEqual([...soon, late]);
  });

  test("names decide nothing, and neither does the order of the file: only ties go by age", () => {
    for (const seed of SEEDS) {
      const run = (names: readonly string[]) => {
        const pick = picker(seed);
        const weight = Object.fromEntries(names.map((name, index) => [name, 1 + (index % 3)]));
        const world = new ShareWorld(6, weightsOf(weight));
        for (let step = 0; step < 150; step++)
          if (pick(2) === 0 || world.inUse.size === 0) {
            const labels = Array.from({ length: 1 + pick(3) }, () => "small");
            world.ask({ tenant: names[pick(names.length)]!, labels, relative: pick(2) });
          } else world.giveBack([...world.inUse.keys()][pick(world.inUse.size)]!);
        return world.served;
      };
      expect(run(["a", "b", "c", "d"])).toEqual(run(["z", "k", "b", "a"]));
    }
  });
});

test("without pressure everybody is served at once", () => {
  for (const seed of SEEDS) {
    const pick = picker(seed);
    const world = new ShareWorld(1_000, weightsOf({ a: 1, b: 50 }));
    for (let step = 0; step < 20; step++) {
      const asked = Array.from({ length: pick(5) }, () => ({ tenant: ["a", "b"][pick(2)]! }));
      world.ask(...asked);
      expect(world.served).toHaveLength(world.asked.size);
    }
  }
});

test("a request for more than its share is served although others always have less: it keeps its turn", () => {
  const world = new ShareWorld(8, weightsOf({}));
  const held = world.ask({ tenant: "b" }, { tenant: "b" });
  world.ask(...Array.from({ length: 6 }, () => ({ tenant: "a" })));
  const [large] = world.ask({ tenant: "b", labels: Array.from({ length: 5 }, () => "small") });
  // B keeps its two nodes, and there is always somebody of A's who has less.
  for (let round = 0; round < 40 && !world.served.includes(large!); round++) {
    world.ask({ tenant: "a" });
    const [next] = [...world.inUse].find(([, id]) => !held.includes(id))!;
    world.giveBack(next);
  }
  expect(world.served).toContain(large);
});

test("a host is not kept for one of many who want it for ever, and what returns goes by share", () => {
  const fields = { launches: false, inventory: new Map([["small", 3]]) };
  const world = new ShareWorld(3, weightsOf({ b: 2 }), fields);
  world.ask(...Array.from({ length: 50 }, () => ({ tenant: "a" })));
  const [both] = world.ask({ tenant: "b", labels: ["small", "small"] });
  for (let round = 0; round < 3; round++) world.giveBack([...world.inUse.keys()][0]!);
  expect(world.served).toContain(both);
});

test("explain says whose turn it is, with the numbers", () => {
  const world = new ShareWorld(2, weightsOf({ gold: 2 }));
  world.ask({ tenant: "tin" }, { tenant: "tin" });
  const [first] = world.ask({ tenant: "gold" });
  const [mine] = world.ask({ tenant: "tin" });
  expect(explain(world.fixture.state, mine!)).toMatchObject({
    code: "queue.share",
    facts: {
      ...{ head: first, tenant: "tin", nodes: 2, weight: 1 },
      ...{ first: "gold", first_nodes: 0, first_weight: 2 },
    },
  });
});

test("launchers that see the same tree agree on who is next, in whatever order they saw it", () => {
  for (const seed of SEEDS) {
    const pick = picker(seed);
    const one = new ShareWorld(4, weightsOf({ a: 2 }));
    for (let step = 0; step < 40; step++) one.ask({ tenant: "abc"[pick(3)]! });
    // A launcher that starts now reads the tree in its own order.
    const { state } = one.fixture;
    const other = new ShareWorld(4, weightsOf({ a: 2 })).fixture;
    other.tell({ type: "complete", complete: false });
    const entries = [...state.requests.entries()].sort(() => pick(3) - 1);
    for (const after of [...state.nodes.values()].reverse())
      other.tell({ type: "node", id: after.id, after });
    for (const after of entries) other.tell({ type: "request", id: after.id, after });
    other.tell({ type: "complete", complete: true });
    const first = (world: typeof other) => [...world.state.pools.values()][0]!.queue.first?.id;
    expect(first(other)).toBe(first(one.fixture));
  }
});

test("shares come and go with the configuration, and what is held is counted", () => {
  const world = new ShareWorld(2, undefined);
  world.ask({ tenant: "a" }, { tenant: "a" });
  const [old, more] = world.ask({ tenant: "a" }, { tenant: "a" });
  const [late] = world.ask({ tenant: "b" });
  const given = policy([pool({ limits: { instances: 2 } })]);
  world.fixture.tell({ type: "policy", policy: { ...given, shares: weightsOf({}) } });
  world.giveBack([...world.inUse.keys()][0]!);
  expect(world.served.at(-1)).toBe(late);
  world.fixture.tell({ type: "policy", policy: given });
  world.giveBack([...world.inUse.keys()][0]!);
  world.giveBack([...world.inUse.keys()][0]!);
  expect(world.served.slice(-2)).toEqual([old, more]);
});

test("the queue knows the first as well as one that looks at everybody", () => {
  for (const seed of SEEDS) {
    const pick = picker(seed);
    const shares = new Shares();
    shares.configure(weightsOf({ a: 2, b: 3 }, { x: 2 }));
    const queue = new ShareQueue(shares);
    const there = new Map<string, Waiting>();
    const sharer = () => ({ tenant: "abc"[pick(3)]!, client: "xyz"[pick(3)]! });
    const come = (number: number) => {
      const { tenant, client } = sharer();
      const id = `100-${String(number).padStart(10, "0")}`;
      const relative = pick(2);
      const fields = { tenant_name: tenant, requestor: client, relative_priority: relative };
      const added = { id, relativePriority: relative, record: request(id, fields).record };
      there.set(id, added);
      queue.add(added);
    };
    const go = () => {
      const gone = [...there.values()][pick(there.size || 1)];
      if (gone === undefined) return;
      there.delete(gone.id);
      queue.delete(gone);
    };
    const use = () => shares.set(`n${pick(20)}`, pick(4) === 0 ? undefined : sharer());
    for (let step = 0; step < 200; step++) {
      const what = pick(40);
      if (what < 12) come(step);
      else if (what < 20) go();
      else use();
      // Now and then more than is remembered for a queue that does not look.
      if (what === 39) for (let change = 0; change < 9_000; change++) use();
      expect(queue.first?.id).toBe(firstOf(shares, [...there.values()])?.id);
    }
  }
});

/** By the rule, without any queue. */
function firstOf(shares: Shares, all: readonly Waiting[]): Waiting | undefined {
  const rank = Math.min(...all.map(({ relativePriority }) => relativePriority));
  const best = all.filter(({ relativePriority }) => relativePriority === rank);
  const load = ({ record }: Waiting) => shares.load(`${record.tenantName}\n${record.requestor}`);
  const byTenant = [...new Set(best.map(({ record }) => record.tenantName!))].map((tenant) => {
    const own = best.filter(({ record }) => record.tenantName === tenant);
    const [first] = own.sort((a, b) => load(a) - load(b) || compareRequests(a, b));
    return { load: shares.load(tenant), first: first! };
  });
  return byTenant.sort((a, b) => a.load - b.load || compareRequests(a.first, b.first))[0]?.first;
}
