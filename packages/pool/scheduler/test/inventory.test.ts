import { newNode } from "@nodeyard/model";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HOST_BACK_MS, Hosts } from "../src/hosts.ts";
import { explain, outlooksOf, reduce } from "../src/index.ts";
import { Inventory } from "../src/inventory.ts";
import { node, policy, pool, request, SchedulerFixture, unseen } from "./world.ts";

const id = (number: number, priority = 200) => `${priority}-${String(number).padStart(10, "0")}`;
const host = (number: number) => String(number).padStart(10, "0");

/** A laboratory whose hosts are all in use; host N has the labels at place N. */
function busyLab(hosts: readonly (readonly string[])[], fields: Parameters<typeof policy>[1] = {}) {
  const inventory = new Map<string, number>();
  for (const labels of hosts)
    for (const label of labels) inventory.set(label, (inventory.get(label) ?? 0) + 1);
  const lab = pool({ provider: "lab", launches: false, labels: new Set(inventory.keys()), inventory });
  const fixture = new SchedulerFixture(policy([lab], fields));
  const set = (number: number, state: string, contenders: readonly string[] = []) =>
    fixture.node(host(number), { provider: "lab", type: hosts[number], state, resources: null }, contenders);
  for (const number of hosts.keys()) set(number, "in-use", ["user"]);
  return {
    fixture,
    lab,
    free: (number: number) => accepted(set(number, "ready")),
    use: (number: number) => accepted(set(number, "in-use", ["user"])),
    ask: (name: string, ...labels: string[]) => accepted(fixture.request(name, { node_types: labels })),
  };
}

function accepted(actions: readonly { readonly type: string }[]): string[] {
  return actions.flatMap((action) =>
    action.type === "accept" ? [(action as unknown as { request: string }).request] : [],
  );
}

describe("hosts are kept for the first in line", () => {
  test("a request for two hosts keeps the first that it got, and no later request gets a host before it", () => {
    const { fixture, free, ask } = busyLab([["board"], ["board"]]);
    ask(id(1), "board", "board");
    expect(free(0)).toEqual([]);
    // Before, each of these took the host that the first had just been offered.
    for (let number = 2; number < 60; number++) expect(ask(id(number, 300), "board")).toEqual([]);
    expect(explain(fixture.state, id(1))).toMatchObject({
      code: "nodes.none-free",
      facts: { pool: "lab/main", label: "board", place: 1, in_line: 59, kept: 1, wanted: 2 },
    });
    expect(explain(fixture.state, id(30, 300))).toMatchObject({ facts: { place: 30, kept: 0 } });
    expect(free(1)).toEqual([id(1)]);
  });

  test("two who want two each never wait for each other: the later one gives up what the first can use", () => {
    const { fixture, free, ask } = busyLab([
      ["a", "b"],
      ["a", "b"],
    ]);
    ask(id(2), "b", "b");
    free(0);
    expect(explain(fixture.state, id(2))).toMatchObject({ facts: { kept: 1 } });
    ask(id(1), "a", "a");
    expect(explain(fixture.state, id(1))).toMatchObject({ facts: { kept: 1 } });
    expect(explain(fixture.state, id(2))).toMatchObject({ facts: { kept: 0 } });
    expect(free(1)).toEqual([id(1)]);
  });

  test("of hosts with several labels the first keeps one that the next has no use for", () => {
    const { free, ask } = busyLab([["a", "b"], ["a"], ["c"]]);
    ask(id(1), "a", "c");
    ask(id(2), "b");
    expect(free(0)).toEqual([]);
    // The first can do with this one, and the second with the other.
    expect(free(1)).toEqual([id(2)]);
    expect(free(2)).toEqual([id(1)]);
  });

  test("a nodeset of two labels gets a host of both for the label that no other host has", () => {
    const { free, ask } = busyLab([["a", "b"], ["a"]]);
    ask(id(1), "a", "b");
    expect(free(0)).toEqual([]);
    expect(free(1)).toEqual([id(1)]);
  });
});

describe("nothing is kept for a request that wants more hosts than there are", () => {
  const gone = (fixture: SchedulerFixture, number: number) => accepted(fixture.gone("node", host(number)));

  test("a host that does not come back delays the request that waits for it, and no other", () => {
    const { fixture, free, ask } = busyLab([["board"], ["board"], ["board"]]);
    ask(id(1), "board", "board", "board");
    ask(id(2), "board", "board");
    free(0);
    free(1);
    gone(fixture, 2);
    // It may just be registered anew.
    expect(accepted(fixture.wait(HOST_BACK_MS - 1))).toEqual([]);
    expect(explain(fixture.state, id(1))).toMatchObject({ code: "nodes.none-free", facts: { kept: 2 } });
    expect(accepted(fixture.wait(1))).toEqual([id(2)]);
    expect(explain(fixture.state, id(1))).toMatchObject({ code: "nodes.too-few", facts: { wanted: 3 } });
    // A new host: it keeps again what it can get.
    fixture.node(host(3), { provider: "lab", type: ["board"], state: "in-use", resources: null }, ["user"]);
    expect(fixture.code(id(1))).toBe("nodes.none-free");
  });

  test("a host that is registered again in time counts as never gone", () => {
    const { fixture, ask } = busyLab([["board"], ["board"], ["board"]]);
    gone(fixture, 2);
    const record = { provider: "lab", type: ["board"], hostname: "h", slot: 0, resources: null };
    fixture.node(host(7), record, ["user"]);
    fixture.wait(HOST_BACK_MS);
    ask(id(1), "board", "board", "board");
    gone(fixture, 7);
    fixture.wait(HOST_BACK_MS - 1);
    fixture.node(host(8), record, ["user"]);
    fixture.wait(HOST_BACK_MS);
    expect(fixture.code(id(1))).toBe("nodes.none-free");
  });

  test("hosts are counted by the labels that they have now, those that were given up not", () => {
    const hosts = new Hosts();
    const set = (number: number, ...type: string[]) =>
      hosts.set(host(number), newNode({ state: "in-use", type, hostname: `h${number}` }, 1));
    set(0, "board");
    set(1, "board");
    expect([hosts.doFor(["board", "board"]), hosts.doFor(["board", "board", "board"])]).toEqual([
      true,
      false,
    ]);
    set(1, "phone");
    expect([hosts.doFor(["board", "phone"]), hosts.doFor(["board", "board"])]).toEqual([true, false]);
    // The last of its labels.
    hosts.lapse(hosts.remove(host(0))!);
    expect([hosts.doFor(["phone"]), hosts.doFor(["board"])]).toEqual([true, false]);
    set(2, "board");
    // One that was given up is repaired.
    set(0, "board");
    expect(hosts.doFor(["board", "board", "phone"])).toBe(true);
    // Of two that want the same, one leaves: the other still hears that a host left.
    const [first, second] = [1, 2].map((number) => ({ id: id(number), record: { nodeTypes: ["phone"] } }));
    expect([hosts.enoughFor(first!), hosts.enoughFor(second!)]).toEqual([true, true]);
    hosts.forget(first!);
    expect(hosts.lapse(hosts.remove(host(1))!)).toEqual([second]);
  });
});

describe("no wake-up is lost", () => {
  test("what is kept for a request that goes is the next one's at once", () => {
    const { fixture, free, ask } = busyLab([["board"], ["board"]]);
    ask(id(1), "board", "board");
    ask(id(2), "board");
    free(0);
    expect(accepted(fixture.gone("request", id(1)))).toEqual([id(2)]);
  });

  test("a host that fails while it is kept is replaced by the next one that is free", () => {
    const { fixture, free, use, ask } = busyLab([["board"], ["board"], ["board"]]);
    ask(id(1), "board", "board");
    free(0);
    use(0);
    expect(explain(fixture.state, id(1))).toMatchObject({ facts: { kept: 0 } });
    expect([...free(1), ...free(2)]).toEqual([id(1)]);
  });

  test("hosts that were idle before their pool was known are given away", () => {
    const { lab } = busyLab([["board"]]);
    const fixture = new SchedulerFixture(policy([]), []);
    fixture.node(host(0), { provider: "lab", type: ["board"], resources: null });
    fixture.request(id(1), { node_types: ["board"] });
    expect(accepted(fixture.tell({ type: "policy", policy: policy([lab]) }))).toEqual([id(1)]);
  });

  test("no host is kept for a request that waits for its tenant's limit", () => {
    const { fixture, free, ask } = busyLab([["board"], ["board"], ["phone"]], {
      tenantLimits: new Map([["t1", { instances: 2 }]]),
    });
    fixture.request(id(1), { node_types: ["board", "board"], tenant_name: "t1" });
    ask(id(2), "board");
    expect(free(0)).toEqual([]);
    // Its tenant takes a host by another request: two more are too many now.
    const phone = { provider: "lab", type: ["phone"], state: "in-use", resources: null };
    const taken = fixture.node(host(2), { ...phone, tenant_name: "t1", allocated_to: id(9) }, ["user"]);
    expect(accepted(taken)).toEqual([id(2)]);
    expect(fixture.code(id(1))).toBe("capacity.tenant");
  });
});

test("a host that is free costs the same however many requests wait: the others are not looked at", () => {
  const { fixture, lab } = busyLab(Array.from({ length: 1_000 }, () => ["board"]));
  const two = { node_types: ["board", "board"] };
  fixture.tell(
    ...Array.from({ length: 5_000 }, (_, number) => ({
      type: "request" as const,
      id: id(number),
      after: request(id(number), two),
    })),
  );
  const free = (number: number) => ({
    type: "node" as const,
    id: host(number),
    after: node(host(number), { provider: "lab", type: ["board"], resources: null }),
  });
  const verdicts = fixture.verdicts();
  // More than a turn's budget of others would take more turns.
  const first = reduce(fixture.state, [free(0)], 0);
  expect([first.actions, first.more]).toEqual([[], false]);
  for (const [request, verdict] of fixture.verdicts()) expect(verdict).toBe(verdicts.get(request));
  const second = reduce(fixture.state, [free(1)], 0);
  expect(second.actions).toMatchObject([{ type: "accept", request: id(0) }]);
  expect(second.verdicts.map(({ request }) => request)).toEqual([id(0)]);
  expect(outlooksOf(fixture.state, { now: 0, steady: 0 }, request(id(4_000), two), unseen)).toMatchObject([
    { pool: lab.key, outlook: "waits", code: "nodes.none-free", position: 4_000, waiting: 4_999 },
  ]);
});

interface Wish {
  readonly id: string;
  readonly record: { readonly nodeTypes: readonly string[] };
}

const byId = (a: Wish, b: Wish) => (a.id < b.id ? -1 : Number(a.id > b.id));

/** How many hosts each request keeps when all is decided at once: each in order takes what leaves the earlier ones theirs. */
function fromScratch(
  hosts: ReadonlyMap<string, readonly string[]>,
  wishes: readonly Wish[],
): Map<string, number> {
  const slots: string[] = [];
  const filled = new Map<string, number>();
  const kept = new Map<string, number>();
  const fits = (slot: number, tried: Set<string>): boolean => {
    for (const [name, labels] of hosts) {
      if (!labels.includes(slots[slot]!) || tried.has(name)) continue;
      tried.add(name);
      const other = filled.get(name);
      if (other !== undefined && !fits(other, tried)) continue;
      filled.set(name, slot);
      return true;
    }
    return false;
  };
  for (const wish of [...wishes].sort(byId)) {
    let count = 0;
    for (const label of wish.record.nodeTypes) {
      slots.push(label);
      if (fits(slots.length - 1, new Set())) count++;
      else slots.pop();
    }
    kept.set(wish.id, count);
  }
  return kept;
}

const name = fc.constantFrom("a", "b", "c", "d");
const move = fc.oneof(
  fc.record({
    kind: fc.constant("host" as const),
    which: fc.nat(11),
    labels: fc.uniqueArray(name, { minLength: 1 }),
  }),
  fc.record({ kind: fc.constant("host gone" as const), which: fc.nat(11) }),
  fc.record({
    kind: fc.constant("ask" as const),
    which: fc.nat(8),
    labels: fc.array(name, { minLength: 1, maxLength: 4 }),
  }),
  fc.record({ kind: fc.constant("gone" as const), which: fc.nat(8) }),
  fc.record({ kind: fc.constant("take" as const), which: fc.nat(8) }),
);

type Move = typeof move extends fc.Arbitrary<infer T> ? T : never;

/** An inventory, with the hosts and wishes that it was told of. */
class ReportedEvents {
  readonly inventory = new Inventory<Wish>(byId);
  readonly hosts = new Map<string, readonly string[]>();
  readonly wishes = new Map<string, Wish>();

  apply({ kind, which, labels = [] }: Move & { readonly labels?: readonly string[] }): void {
    const key = String(which);
    if (kind === "host" && !this.hosts.has(key)) {
      this.hosts.set(key, labels);
      this.inventory.add(key, labels);
    } else if (kind === "host gone") {
      this.hosts.delete(key);
      this.inventory.remove(key);
    } else if (kind === "ask" && !this.wishes.has(key)) {
      const wish = { id: key, record: { nodeTypes: labels } };
      this.wishes.set(key, wish);
      this.inventory.join(wish);
    } else if (kind === "gone") {
      this.wishes.delete(key);
      this.inventory.leave(key);
    } else if (kind === "take") this.#take(key);
  }

  #take(key: string): void {
    const taken = this.inventory.whole(key);
    if (taken === undefined) return;
    this.inventory.take(key, taken);
    this.wishes.delete(key);
    for (const gone of taken) this.hosts.delete(gone);
  }
}

test("the kept hosts depend on hosts and requests only, not on their order of arrival", () => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 60, size: "max" }), (moves) => {
      const reported = new ReportedEvents();
      const { inventory, hosts, wishes } = reported;
      for (const each of moves) {
        reported.apply(each);
        const kept = [...wishes.keys()].map((wish) => [wish, inventory.keptFor(wish)] as const);
        const all = kept.flatMap(([, ids]) => ids);
        expect(new Set(all).size).toBe(all.length);
        const counts = new Map(kept.map(([wish, ids]) => [wish, ids.length]));
        expect(counts).toEqual(fromScratch(hosts, [...wishes.values()]));
        for (const { id: wish, record } of wishes.values())
          for (const [index, kept] of (inventory.whole(wish) ?? []).entries())
            expect(hosts.get(kept)).toContain(record.nodeTypes[index]);
      }
    }),
    { numRuns: 200 },
  );
});
