import type { SlotSettings } from "@nodeyard/driver";
import type { BackingFacts } from "@nodeyard/view";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Action } from "../src/index.ts";
import { policy, pool, SchedulerFixture } from "./world.ts";

const settings: SlotSettings = {
  backingLabel: "large",
  slots: 2,
  graceMs: 0,
  minRetentionMs: 0,
  maxAgeMs: Number.POSITIVE_INFINITY,
};
const slicer = pool({ provider: "slicer", labels: new Set(["slice"]) });
const cutAs = (slots: SlotSettings) =>
  policy([slicer], {
    providers: new Map([
      [
        "slicer",
        {
          name: "slicer",
          maxConcurrency: Number.POSITIVE_INFINITY,
          quota: {},
          slots: new Map([["slice", slots]]),
        },
      ],
    ]),
  });
const served = cutAs(settings);

function backing(id: string, taken: readonly number[] = [], fields: Partial<BackingFacts> = {}) {
  const after: BackingFacts = {
    id,
    provider: "slicer",
    label: "slice",
    slots: 2,
    launched: 0,
    version: 4,
    inUse: true,
    open: true,
    ended: undefined,
    taken: new Set(taken),
    ...fields,
  };
  return { type: "backing", id, after } as const;
}

const wanted = (request: string, node: string) =>
  ({ type: "slot-wanted", request, node, provider: "slicer", label: "slice" }) as const;

class Slicer extends SchedulerFixture {
  constructor(policy = served) {
    super(policy);
  }

  /** Asks for a node, and returns what is planned for it. */
  ask(id: string, fields = {}): Extract<Action, { type: "accept" }> {
    const [accept] = this.request(id, { node_types: ["slice"], ...fields });
    if (accept?.type !== "accept") throw new Error(`${id} is not accepted: ${JSON.stringify(accept)}`);
    return accept;
  }
}

describe("a launch that needs a slot", () => {
  test("is planned with the lowest free one of the oldest backing node, at the version that it had", () => {
    const fixture = new Slicer();
    fixture.tell(backing("0000000002"), backing("0000000001", [0]));
    expect(fixture.ask("100-0000000001").nodes).toMatchObject([
      { slot: { backing: "0000000001", slot: 1, version: 4 } },
    ]);
    expect(fixture.ask("100-0000000002").nodes).toMatchObject([{ slot: { backing: "0000000002", slot: 0 } }]);
  });

  test("waits in its request's place, and no newcomer is served before it", () => {
    const fixture = new Slicer();
    fixture.ask("200-0000000001");
    fixture.ask("100-0000000002");
    expect(fixture.tell(wanted("200-0000000001", "11"), wanted("100-0000000002", "12"))).toEqual([]);
    // What comes in one turn with the slot is behind those who wait.
    const third = { id: "100-0000000003" };
    expect(fixture.tell(backing("0000000001", [0]))).toMatchObject([
      { type: "slot", node: "12", slot: { backing: "0000000001", slot: 1 } },
    ]);
    expect(fixture.ask(third.id).nodes[0]).not.toHaveProperty("slot");
    expect(fixture.tell(backing("0000000009"))).toMatchObject([{ type: "slot", node: "11" }]);
  });

  test("has a slot at once where one is free when it asks", () => {
    const fixture = new Slicer();
    fixture.ask("100-0000000001");
    fixture.tell(backing("0000000001"));
    expect(fixture.tell(wanted("100-0000000001", "11"))).toMatchObject([{ type: "slot", node: "11" }]);
  });

  test("a lost claim leaves the slot to the first launch in line", () => {
    const fixture = new Slicer();
    fixture.tell(backing("0000000001", [0]));
    fixture.ask("100-0000000001");
    fixture.ask("100-0000000002");
    expect(fixture.tell(wanted("100-0000000002", "12"))).toEqual([]);
    const lost = { type: "slot-lost", place: { backing: "0000000001", slot: 1 } } as const;
    expect(fixture.tell(lost)).toMatchObject([{ type: "slot", node: "12", slot: { slot: 1 } }]);
  });

  test("that ends before it claimed gives its slot to the next, and waits for nothing any more", () => {
    const fixture = new Slicer();
    fixture.tell(backing("0000000001", [0]));
    for (const id of ["100-0000000001", "100-0000000002", "100-0000000003"]) fixture.ask(id);
    fixture.tell(wanted("100-0000000002", "12"), wanted("100-0000000003", "13"));
    fixture.tell({ type: "handled", request: "100-0000000002" });
    const next = fixture.tell({ type: "handled", request: "100-0000000001" });
    expect(next.filter(({ type }) => type === "slot")).toMatchObject([{ node: "13" }]);
    fixture.tell({ type: "handled", request: "100-0000000003" });
    expect(fixture.state.slots.requests()).not.toContain("100-0000000002");
  });

  test("gets none once its request is gone, or its provider is served no more", () => {
    const fixture = new Slicer();
    fixture.ask("100-0000000001");
    fixture.ask("100-0000000002");
    fixture.tell(wanted("100-0000000001", "11"), wanted("100-0000000002", "12"));
    expect(fixture.gone("request", "100-0000000001")).toMatchObject([
      { type: "slot", node: "11", refused: { gone: true } },
    ]);
    expect(fixture.tell({ type: "policy", policy: { ...served, pools: [] } })).toMatchObject([
      { type: "slot", node: "12", refused: { gone: false } },
    ]);
  });

  test("fails with the backing request that it waits for: as many as that would have served, the first first", () => {
    const fixture = new Slicer();
    const ids = ["100-0000000001", "100-0000000002", "100-0000000003"];
    for (const id of ids) fixture.ask(id);
    fixture.tell(...ids.map((id, index) => wanted(id, `1${index}`)));
    const asked = { node_types: ["large"], requestor: "NodePool:metastatic:slicer" };
    fixture.request("100-0000000009", asked);
    const refused = fixture.request("100-0000000009", { ...asked, state: "failed" });
    expect(refused.filter(({ type }) => type === "slot")).toMatchObject([{ node: "10" }, { node: "11" }]);
  });
});

describe("a launch whose label has caches", () => {
  const caches = [
    { name: "npm", key: ["project"] },
    { name: "ccache", key: ["label"] },
  ];
  const [npm, ccache] = ['["npm","","project=web"]', '["ccache","","label=slice"]'];
  const has = (id: string, ...all: readonly string[]) =>
    ({ type: "caches", backing: id, caches: new Set(all) }) as const;
  const web = { requestor_data: { project: "web" } };

  test("goes to the backing node that has most of them, of those with a free slot, and waits for none", () => {
    const state = fc.record({
      taken: fc.uniqueArray(fc.nat(1)),
      has: fc.subarray([npm, ccache, '["npm","","project=shop"]', '["npm","acme","project=web"]']),
    });
    fc.assert(
      fc.property(fc.array(state, { maxLength: 5 }), (all) => {
        const fixture = new Slicer(cutAs({ ...settings, caches }));
        const nodes = all.map((one, index) => ({ ...one, id: `000000000${index}` }));
        for (const one of nodes) fixture.tell(backing(one.id, one.taken), has(one.id, ...one.has));
        const count = (one: (typeof nodes)[number]) =>
          one.has.filter((text) => text === npm || text === ccache).length;
        const free = nodes.filter(({ taken }) => taken.length < 2);
        const most = Math.max(...free.map(count));
        const [planned] = fixture.ask("100-0000000001", web).nodes;
        const slot = planned !== undefined && "slot" in planned ? planned.slot : undefined;
        expect(slot?.backing).toBe(free.find((one) => count(one) === most)?.id);
        expect(slot?.caches.length ?? 0).toBe(slot === undefined ? 0 : most);
      }),
    );
  });

  test("has the cache of its own facts only, and of none while nobody has asked for it", () => {
    const fixture = new Slicer(cutAs({ ...settings, caches: caches.slice(0, 1) }));
    fixture.tell(backing("0000000001"), backing("0000000002"), has("0000000002", npm));
    const of = (id: string, fields = {}) => fixture.ask(id, fields).nodes;
    expect(of("100-0000000001", { ...web, tenant_name: "acme" })).toMatchObject([
      { slot: { backing: "0000000001", caches: [] } },
    ]);
    expect(of("100-0000000002", web)).toMatchObject([{ slot: { backing: "0000000002", caches: ["npm"] } }]);
    const forNobody = { ...web, requestor: "NodePool:min-ready" };
    expect(of("100-0000000003", forNobody)).toMatchObject([{ slot: { backing: "0000000001" } }]);
    // Another use of the machine: what it had is told anew.
    fixture.tell({ type: "backing", id: "0000000002" }, backing("0000000002"), backing("0000000003"));
    expect(of("100-0000000004", web)).toMatchObject([{ slot: { backing: "0000000002", caches: [] } }]);
  });
});

/** Launches that claim, lose, free and leave slots in any order, beside others who do the same. */
class Course {
  readonly fixture = new Slicer();
  readonly backings = new Map<string, { readonly taken: Set<number>; ended: string | undefined }>();
  /** What each request's launches have to do yet: claim the slot that they were given. */
  readonly given = new Map<string, { readonly backing: string; readonly slot: number }[]>();
  #next = 1;

  id(): string {
    return String(this.#next++).padStart(10, "0");
  }

  show(id: string): void {
    const known = this.backings.get(id);
    const event = known && backing(id, [...known.taken], { ended: known.ended });
    this.take(this.fixture.tell(event ?? { type: "backing", id }));
  }

  take(actions: readonly Action[]): void {
    for (const action of actions) {
      if (action.type === "slot" && action.slot !== undefined)
        this.given.get(requestOf(action.node))?.push(action.slot);
      if (action.type !== "accept") continue;
      this.given.set(action.request, []);
      for (const [index, planned] of action.nodes.entries()) {
        if ("launch" in planned && planned.slot !== undefined)
          this.given.get(action.request)!.push(planned.slot);
        else this.take(this.fixture.tell(wanted(action.request, `${action.request}#${index}`)));
      }
    }
  }

  /** No slot is promised that somebody has, and nobody waits while there is one that is promised to nobody. */
  check(): void {
    const { slots, waits } = this.fixture.state;
    const free = [...this.backings].flatMap(([id, { taken, ended }]) =>
      ended === undefined ? [0, 1].filter((slot) => !taken.has(slot)).map((slot) => `${id}/${slot}`) : [],
    );
    for (const promised of slots.promised().keys()) {
      const [id, slot] = promised.split("/");
      expect(this.backings.get(id!)?.taken.has(Number(slot))).not.toBe(true);
    }
    if (waits.line("slot", LINE).size > 0)
      expect(free.filter((key) => !slots.promised().has(key))).toEqual([]);
    const fresh = new Slicer();
    for (const [id, { taken, ended }] of this.backings) fresh.tell(backing(id, [...taken], { ended }));
    expect(slots.free()).toEqual(fresh.state.slots.free());
  }
}

const LINE = JSON.stringify(["slicer", "slice"]);
const requestOf = (node: string) => node.slice(0, node.indexOf("#"));
const pickOf = <T>(values: Iterable<T>, pick: number): T | undefined => {
  const all = [...values];
  return all[pick % Math.max(1, all.length)];
};

type Turn = readonly [
  kind: "ask" | "backing" | "claim" | "lose" | "other" | "free" | "gone" | "ended" | "handled",
  pick: number,
];

function apply(course: Course, [kind, pick]: Turn): void {
  const [id, known] = pickOf(course.backings, pick) ?? [];
  const [request, given] = pickOf(course.given, pick) ?? [];
  if (kind === "ask") {
    const count = 1 + (pick % 3);
    const fields = { node_types: Array.from({ length: count }, () => "slice") };
    return course.take(course.fixture.request(`${100 * (1 + (pick % 2))}-${course.id()}`, fields));
  }
  if (kind === "backing") {
    const made = course.id();
    course.backings.set(made, { taken: new Set(), ended: undefined });
    return course.show(made);
  }
  if ((kind === "claim" || kind === "lose") && request !== undefined) {
    const place = given!.shift();
    if (place === undefined) return;
    const at = course.backings.get(place.backing);
    if (kind === "claim" && at !== undefined && !at.taken.has(place.slot)) {
      at.taken.add(place.slot);
      return course.show(place.backing);
    }
    course.take(course.fixture.tell({ type: "slot-lost", place }));
    return course.take(course.fixture.tell(wanted(request, `${request}#again`)));
  }
  if (kind === "handled" && request !== undefined) {
    course.given.delete(request);
    course.take(course.fixture.tell({ type: "request", id: request }, { type: "handled", request }));
  }
  if (id === undefined || known === undefined) return;
  if (kind === "other") known.taken.add(pick % 2);
  else if (kind === "free") known.taken.delete(pick % 2);
  else if (kind === "ended") known.ended = known.ended === undefined ? "it is retired" : undefined;
  else if (kind === "gone") course.backings.delete(id);
  course.show(id);
}

test("after any sequence of events slots are known as from scratch and promised once, and no request waits while one is free", () => {
  const turn = fc.tuple(
    fc.constantFrom(
      "ask",
      "ask",
      "backing",
      "claim",
      "claim",
      "lose",
      "other",
      "free",
      "gone",
      "ended",
      "handled",
    ),
    fc.nat(50),
  );
  fc.assert(
    fc.property(fc.array(turn, { maxLength: 60 }), (turns) => {
      const course = new Course();
      for (const each of turns) {
        apply(course, each as Turn);
        course.check();
      }
      for (const request of [...course.given.keys()])
        course.fixture.tell({ type: "request", id: request }, { type: "handled", request });
      expect(course.fixture.state.slots.requests()).toEqual([]);
      expect(course.fixture.state.waits.line("slot", LINE).size).toBe(0);
    }),
    { numRuns: 300 },
  );
});
