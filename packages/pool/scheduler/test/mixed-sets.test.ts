import type { Lease, LeasePart, MixedSet, NodeRecord, Pairing, PoolOffer } from "@nodeyard/model";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { brokenRule, type GatheringSet, planSet, type SetFacts } from "../src/index.ts";
import { pairFor, zonesFor } from "../src/pairing.ts";

const part = (label: string, more: Partial<LeasePart> = {}): LeasePart => ({
  label,
  nodes: [],
  asked: null,
  ...more,
});
const setOf = (parts: readonly LeasePart[], same: readonly Pairing[] = []): MixedSet => ({
  priority: "200",
  project: null,
  branch: null,
  same,
  parts,
  yields: false,
});
const offer = (provider: string, labels: readonly string[], more: Partial<PoolOffer> = {}): PoolOffer => ({
  provider,
  name: "main",
  labels,
  kind: "machines",
  backing: [],
  zones: [],
  attributes: {},
  ...more,
});

/** What launches nodes: labels, and how many nodes of them there may be at once. */
interface Place {
  readonly labels: readonly string[];
  readonly size: number;
  /** Slots of these: each takes one of their nodes. */
  readonly backing?: string;
}

/** A set in the model, as its lease and its open request have it. */
interface Mine {
  readonly id: string;
  readonly created: number;
  readonly tenant: string | null;
  parts: LeasePart[];
  /** Undefined: none is written. */
  request: { label: string; at: number; turn: number } | undefined;
  yields: number;
  done: boolean;
}

/**
 * A yard that serves requests in their order wherever there is room, and nothing else: no expiry, so that sets which block each other
 * stay blocked. Steps of sets and of the yard come in an order that `pick` chooses.
 */
function play(
  places: Readonly<Record<string, Place>>,
  wishes: readonly { readonly labels: readonly string[]; readonly tenant: string | null }[],
  limit: number,
  pick: (count: number) => number,
): { readonly order: string[]; readonly sets: readonly Mine[] } {
  const offers = Object.entries(places).map(([name, { labels, backing }]) =>
    offer(name, labels, { backing: backing === undefined ? [] : [backing] }),
  );
  const sets = wishes.map(
    ({ labels, tenant }, index): Mine => ({
      id: `${index}`,
      created: index,
      tenant,
      parts: [...new Set(labels)].map((label) => part(label)),
      request: undefined,
      yields: 0,
      done: false,
    }),
  );
  const order: string[] = [];
  let [now, turns] = [0, 0];
  const usedOf = (name: string): number =>
    sets.reduce((sum, { parts, done }) => {
      if (done) return sum;
      const mine = parts.filter(
        ({ label, nodes }) => nodes.length > 0 && places[name]!.labels.includes(label),
      );
      const slots = parts.filter(({ label, nodes }) =>
        Object.values(places).some(
          (one) =>
            one.backing !== undefined &&
            places[name]!.labels.includes(one.backing) &&
            one.labels.includes(label) &&
            nodes.length > 0,
        ),
      );
      return sum + mine.length + slots.length;
    }, 0);
  const ofTenant = (tenant: string) =>
    sets.reduce(
      (sum, one) =>
        sum +
        (one.done || one.tenant !== tenant ? 0 : one.parts.filter(({ nodes }) => nodes.length > 0).length),
      0,
    );
  const hasRoom = (label: string): boolean =>
    Object.entries(places).some(([name, { labels, size, backing }]) => {
      if (!labels.includes(label) || usedOf(name) >= size) return false;
      return backing === undefined || hasRoom(backing);
    });
  const facts = (): SetFacts => ({
    offers,
    registered: [],
    node: () => ({}) as NodeRecord,
    isLimited: () => true,
    now,
  });
  const seen = ({ id, created, tenant, parts, request }: Mine): GatheringSet => {
    const set = setOf(
      parts.map((one) =>
        one.label === request?.label ? { ...one, asked: { token: id, at: request.at } } : one,
      ),
    );
    return {
      lease: { id, created, tenant, set } as Lease,
      set,
      request: request && ({ state: "requested" } as GatheringSet["request"]),
    };
  };
  const serve = () => {
    // The first request that there is room for, of its tenant and in its place.
    const line = sets
      .filter(({ request }) => request !== undefined)
      .sort((a, b) => a.request!.turn - b.request!.turn);
    const next = line.find(
      ({ request, tenant }) => (tenant === null || ofTenant(tenant) < limit) && hasRoom(request!.label),
    );
    if (next === undefined) return;
    next.parts = next.parts.map((one) =>
      one.label === next.request!.label ? { ...one, nodes: [`${next.id}-${one.label}`] } : one,
    );
    next.request = undefined;
    if (next.parts.some(({ nodes }) => nodes.length === 0)) return;
    order.push(next.id);
    // Used at once, and given back.
    next.done = true;
  };
  const step = (mine: Mine) => {
    const open = sets.filter(({ done }) => !done);
    const plan = planSet(seen(mine), open.filter((one) => one !== mine).map(seen), facts());
    if (plan.do === "ask") mine.request = { label: plan.label, at: now, turn: turns++ };
    else if (plan.do === "yield") {
      mine.yields++;
      mine.request = undefined;
      mine.parts = mine.parts.map((one) => ({ ...one, nodes: [] }));
    } else if (plan.do === "fail") throw new Error(plan.why);
  };
  for (let rounds = 0; rounds < 2_000 && sets.some(({ done }) => !done); rounds++) {
    const open = sets.filter(({ done }) => !done);
    const at = pick(open.length + 2);
    if (at < open.length) step(open[at]!);
    else if (at === open.length) serve();
    else now += 2_000;
  }
  return { order, sets };
}

const LABELS = ["board-a", "board-b", "slot", "vm", "big"];
const wish = fc.record({
  labels: fc.uniqueArray(fc.constantFrom(...LABELS), { minLength: 1, maxLength: 4 }),
  tenant: fc.constantFrom(null, "t"),
});

describe("sets that want the same", () => {
  test("all get their nodes, in whatever order things happen, with limits that each of them fits into alone", () => {
    fc.assert(
      fc.property(
        fc.array(wish, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 2, max: 4 }),
        fc.integer({ min: 4, max: 5 }),
        fc.infiniteStream(fc.nat()),
        (wishes, cloud, limit, chance) => {
          const places = {
            lab: { labels: ["board-a"], size: 1 },
            attic: { labels: ["board-b"], size: 1 },
            cloud: { labels: ["vm", "big", "metal"], size: cloud + 1 },
            slots: { labels: ["slot"], size: 2, backing: "metal" },
          };
          const { order, sets } = play(places, wishes, limit, (count) => chance.next().value! % count);
          expect(order.length, JSON.stringify(sets)).toBe(wishes.length);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("are served by age where they wait for one thing: no younger set overtakes one that holds something", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 6 }), fc.infiniteStream(fc.nat()), (count, chance) => {
        const places = { lab: { labels: ["board-a", "board-b"], size: 2 } };
        const wishes = Array.from({ length: count }, (_, index) => ({
          labels: index % 2 === 0 ? ["board-a", "board-b"] : ["board-b", "board-a"],
          tenant: null,
        }));
        const { order, sets } = play(places, wishes, 9, (all) => chance.next().value! % all);
        expect(order.length).toBe(count);
        // A set gives way to older ones only, so to each of them at most once.
        for (const { created, yields } of sets) expect(yields).toBeLessThanOrEqual(created);
      }),
      { numRuns: 200 },
    );
  });
});

describe("pairing", () => {
  const node = (fields: object) => fields as NodeRecord;
  /** As its launchers report them, and register what they report. */
  const reported = (...offers: readonly PoolOffer[]) => ({ offers, registered: offers });
  const rules = (...facts: string[]): readonly Pairing[] => facts.map((fact) => ({ fact, labels: [] }));

  test("finds pools that agree in all rules together, and none where they agree only one by one", () => {
    const boards = offer("lab", ["board"], { kind: "hosts", attributes: { rack: "2", net: "x" } });
    const near = offer("c1", ["vm"], { attributes: { rack: "2", net: "y" } });
    const far = offer("c2", ["vm"], { attributes: { rack: "1", net: "x" } });
    const parts = [part("vm"), part("board")];
    const both = setOf(parts, rules("rack", "net"));
    expect(pairFor(both, "board", reported(boards, near, far), () => undefined)).toEqual({
      why: "no pools of its labels agree in rack, net together",
    });
    const one = setOf(parts, rules("rack"));
    expect(pairFor(one, "vm", reported(boards, near, far), () => undefined)).toEqual({
      places: { "c1/main": null },
    });
  });

  test("keeps zones apart in each pool, and follows a part that is held", () => {
    const offers = [
      offer("c1", ["vm"], { zones: ["a", "b"] }),
      offer("c2", ["vm"], { zones: ["b", "c"] }),
      offer("k", ["pod"], { zones: ["b", "d"] }),
    ];
    const set = setOf([part("vm"), part("pod")], rules("zone"));
    expect(pairFor(set, "vm", reported(...offers), () => undefined)).toEqual({
      places: { "c1/main": ["b"], "c2/main": ["b"] },
    });
    const held = { ...set, parts: [part("vm"), part("pod", { nodes: ["1"] })] };
    const found = (az: string) =>
      pairFor(held, "vm", reported(...offers), () => node({ az, provider: "k", attributes: null }));
    expect(found("b")).toEqual({ places: { "c1/main": ["b"], "c2/main": ["b"] } });
    expect(found("d")).toEqual({ why: "its nodes cannot be of the same zone (vm: a, b, c; pod: d)" });
  });

  test("leaves open what pools that are not reported give, beside pools of their label that are", () => {
    const board = offer("lab", ["board"], { attributes: { rack: "1" } });
    const far = offer("c1", ["vm"], { attributes: { rack: "2" } });
    const set = setOf([part("vm"), part("board")], rules("rack"));
    // An older release serves vm, too: of the same provider or of another one.
    for (const provider of ["c1", "c2"]) {
      const pools = { offers: [board, far], registered: [board, far, { provider, labels: ["vm"] }] };
      expect(pairFor(set, "board", pools, () => undefined)).toEqual({ places: { "lab/main": null } });
      const found = pairFor(set, "vm", pools, () => undefined);
      const { places } = found as Extract<typeof found, { places: unknown }>;
      expect(zonesFor(places, { key: `${provider}/other`, provider })).toBeNull();
      expect(zonesFor(places, { key: "c1/main", provider: "c1" })).toBeUndefined();
      expect(zonesFor(places, { key: "c3/main", provider: "c3" })).toBeUndefined();
    }
  });

  test("says what a plan allowed: nodes of the places that were found never break a rule", () => {
    const values = fc.constantFrom("1", "2", "3");
    const pool = (label: string) =>
      fc
        .record({ rack: values, zones: fc.uniqueArray(values, { minLength: 1 }) })
        .map(({ rack, zones }) => ({ label, rack, zones }));
    fc.assert(
      fc.property(
        fc.array(pool("vm"), { minLength: 1, maxLength: 3 }),
        fc.array(pool("board"), { minLength: 1, maxLength: 3 }),
        fc.array(pool("slot"), { minLength: 1, maxLength: 3 }),
        fc.subarray(["zone", "rack"], { minLength: 1 }),
        fc.infiniteStream(fc.nat()),
        (vms, boards, slots, facts, chance) => {
          const all = [...vms, ...boards, ...slots];
          const offers = all.map(({ label, rack, zones }, index) =>
            offer(`p${index}`, [label], { attributes: { rack }, zones }),
          );
          const held = new Map<string, NodeRecord>();
          let set = setOf([part("vm"), part("board"), part("slot")], rules(...facts));
          for (const { label } of set.parts) {
            const found = pairFor(set, label, reported(...offers), (id) => held.get(id));
            // It fails before it has reserved anything, or not at all.
            if ("why" in found) {
              expect(held.size, found.why).toBe(0);
              const exists = vms.some((vm) =>
                boards.some((board) =>
                  slots.some(
                    (slot) =>
                      (!facts.includes("rack") || (vm.rack === board.rack && vm.rack === slot.rack)) &&
                      (!facts.includes("zone") ||
                        vm.zones.some((zone) => board.zones.includes(zone) && slot.zones.includes(zone))),
                  ),
                ),
              );
              expect(exists).toBe(false);
              return;
            }
            const places = Object.entries(found.places!);
            const [key, zones] = places[chance.next().value! % places.length]!;
            const index = offers.findIndex(({ provider }) => `${provider}/main` === key);
            const from = zones ?? offers[index]!.zones;
            const az = from[chance.next().value! % from.length]!;
            held.set(label, node({ az, provider: `p${index}`, attributes: { rack: all[index]!.rack } }));
            set = {
              ...set,
              parts: set.parts.map((one) => (one.label === label ? { ...one, nodes: [label] } : one)),
            };
          }
          const nodes = [...held].map(([label, record]) => ({ label, record }));
          expect(brokenRule(set, nodes)).toBeUndefined();
        },
      ),
      { numRuns: 500 },
    );
  });
});
