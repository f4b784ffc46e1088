import { labelKey, offeringKey } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { explain, type Failures, type LocalOffering, type LocalPool, newTally } from "../src/index.ts";
import { node, policy, pool, request, SchedulerFixture } from "./world.ts";

const keyOf = (type: string, az: string | null = null) => offeringKey({ provider: "cloud", az, type });
const offering = (type: string, fields: Partial<LocalOffering> = {}): LocalOffering => ({
  ...{ type, zone: null, weight: 0, price: null, maxPrice: null, need: { instances: 1 } },
  ...fields,
});
const SPOT = offering("m5, spot", { price: 0.03 });
const FIXED = offering("m5", { price: 0.1 });

const places = (small: readonly LocalOffering[], fields: Partial<LocalPool> = {}) =>
  pool({ offerings: new Map([["small", small]]), ...fields });

function failed(kind: string, until = 60_000): Failures {
  const tally = { ...newTally(), row: 1, since: 0, last: { kind, error: "no room" } };
  return { tally, pause: { why: "failures", opens: 1, until } };
}

/** What the nodes of accepted requests are bought as, and where. */
const bought = (actions: ReturnType<SchedulerFixture["tell"]>) =>
  actions.flatMap((action) =>
    action.type === "accept"
      ? action.nodes.map((one) => `${"reuse" in one ? one.reuse : one.type} ${action.zone}`)
      : [],
  );

function asks(fixture: SchedulerFixture, id = "100-1", fields: object = {}): string[] {
  return bought(fixture.tell({ type: "request", id, after: request(id, fields) }));
}

describe("a label with several offerings is bought as", () => {
  test.each<[string, readonly LocalOffering[], string]>([
    ["the cheapest", [FIXED, SPOT], "m5, spot"],
    ["the one with the highest weight, whatever it costs", [SPOT, { ...FIXED, weight: 1 }], "m5"],
    ["one whose price is known before one of which it is not", [offering("x"), FIXED], "m5"],
    ["the first of equal ones", [offering("a"), offering("b")], "a"],
    ["none that costs more than its max-price", [{ ...SPOT, maxPrice: 0.02 }, FIXED], "m5"],
    [
      "one whose price is not known, whatever its max-price",
      [offering("x", { maxPrice: 0.01, weight: 1 }), FIXED],
      "x",
    ],
    ["none that can never be had", [{ ...SPOT, unavailable: "no such type" }, FIXED], "m5"],
  ])("%s", (_, offerings, type) => {
    expect(asks(new SchedulerFixture(policy([places(offerings)])))).toEqual([`${type} null`]);
  });

  test("the next best while the best has no room in the cloud, and as the best again when that has recovered", () => {
    const fixture = new SchedulerFixture(policy([places([SPOT, FIXED])]));
    fixture.tell({ type: "failures", key: keyOf("m5, spot"), after: failed("capacity") });
    expect(asks(fixture)).toEqual(["m5 null"]);
    fixture.tell({ type: "failures", key: keyOf("m5, spot") });
    expect(asks(fixture, "100-2")).toEqual(["m5, spot null"]);
  });

  test("one that fits: a quota that is used up is another figure than a price", () => {
    const need = { instances: 1, spots: 1 };
    const given = policy([places([{ ...SPOT, need }, FIXED])]);
    const quota = { instances: 10, spots: 1 };
    const providers = new Map([...given.providers].map(([name, one]) => [name, { ...one, quota }]));
    const fixture = new SchedulerFixture({ ...given, providers });
    // Both nodes of a label are bought as one offering.
    expect(asks(fixture, "100-1", { node_types: ["small", "small"] })).toEqual(["m5 null", "m5 null"]);
    expect(asks(fixture, "100-2")).toEqual(["m5, spot null"]);
    expect(asks(fixture, "100-3")).toEqual(["m5 null"]);
  });

  test("of equal ones: with fewer failures, then where the cloud said there is room, then what was ready sooner", () => {
    const [a, b, c] = [offering("a"), offering("b"), offering("c")];
    const fixture = new SchedulerFixture(policy([places([a, b, c])]));
    const { last: _, ...tally } = { ...newTally(), row: 2 };
    fixture.tell({ type: "failures", key: keyOf("a"), after: { tally: { ...tally, last: undefined } } });
    expect(asks(fixture, "100-1")).toEqual(["b null"]);
    fixture.state.zonesWithRoom.set(keyOf("c"), 600_000);
    expect(asks(fixture, "100-2")).toEqual(["c null"]);
    fixture.now = 600_000;
    const made = { node_types: ["small"], driver_data: { nodeyard: { offering: "b" } } };
    const [building, ready] = [
      { ...made, state: "building", state_time: 10 },
      { ...made, state: "ready", state_time: 70, allocated_to: "100-1" },
    ];
    fixture.tell({ type: "node", id: "0000000001", after: node("0000000001", building, ["us"]) });
    fixture.tell({ type: "node", id: "0000000001", after: node("0000000001", ready, ["us"]) });
    expect(fixture.state.readyTimes.get(keyOf("b"))).toBe(60_000);
    // Nobody has timed c.
    expect(asks(fixture, "100-3")).toEqual(["c null"]);
  });

  test("a type in the zone that an offering names; one zone for a nodeset, in which all of its labels are sold", () => {
    const both = new Map([
      ["small", [offering("s", { zone: "b" }), offering("s", { zone: "a", price: 9 })]],
      ["large", [offering("l", { zone: "a" })]],
    ]);
    const fixture = new SchedulerFixture(policy([pool({ zones: ["a", "b"], offerings: both })]));
    expect(asks(fixture, "100-1")).toEqual(["s a"]);
    expect(asks(fixture, "100-2", { node_types: ["small", "large"] })).toEqual(["s a", "l a"]);
    const apart = new Map([
      ["small", both.get("small")!.slice(0, 1)],
      ["large", both.get("large")!],
    ]);
    const never = new SchedulerFixture(policy([pool({ zones: ["a", "b"], offerings: apart })]));
    const actions = never.tell({
      type: "request",
      id: "100-1",
      after: request("100-1", { node_types: ["small", "large"] }),
    });
    expect(actions).toContainEqual(
      expect.objectContaining({ type: "decline", reason: "no zone sells all of small, large" }),
    );
  });

  test("one that is open where its nodeset goes, when its ready node is in a zone that is closed to the others", () => {
    const only = pool({ zones: ["a", "b"], offerings: new Map([["small", [SPOT, FIXED]]]) });
    const fixture = new SchedulerFixture(policy([only]));
    const made = { az: "a", driver_data: { nodeyard: { offering: "m5" } } };
    fixture.tell({ type: "node", id: "0000000001", after: node("0000000001", made) });
    fixture.tell({ type: "failures", key: keyOf("large", "a"), after: failed("capacity") });
    // Seed 177: it was bought as whatever the label names itself, and the record said nothing of it.
    const mixed = { node_types: ["large", "small"] };
    expect(asks(fixture, "100-1", mixed)).toEqual(["undefined b", "m5, spot b"]);
    for (const type of ["m5, spot", "m5"])
      fixture.tell({ type: "failures", key: keyOf(type, "b"), after: failed("capacity") });
    expect(asks(fixture, "100-2", mixed)).toEqual([]);
    expect(explain(fixture.state, "100-2")).toMatchObject({ code: "offering.failing", nextTry: 60_000 });
    expect(bought(fixture.tell({ type: "failures", key: keyOf("large", "a") }))).toEqual([
      "undefined a",
      "0000000001 a",
    ]);
  });
});

describe("a label of which no offering can be had", () => {
  test("waits for the one that opens first, and goes on with any of them", () => {
    const fixture = new SchedulerFixture(policy([places([SPOT, FIXED])]));
    fixture.tell({ type: "failures", key: keyOf("m5, spot"), after: failed("capacity", 90_000) });
    fixture.tell({ type: "failures", key: keyOf("m5"), after: failed("capacity", 60_000) });
    expect(asks(fixture)).toEqual([]);
    expect(explain(fixture.state, "100-1")).toMatchObject({ code: "offering.failing", nextTry: 60_000 });
    expect(bought(fixture.tell({ type: "failures", key: keyOf("m5, spot") }))).toEqual(["m5, spot null"]);
  });

  test("waits while all cost too much, and is bought once a price has fallen", () => {
    const dear = places([{ ...SPOT, maxPrice: 0.02 }]);
    const fixture = new SchedulerFixture(policy([dear]));
    expect(asks(fixture)).toEqual([]);
    expect(explain(fixture.state, "100-1")).toMatchObject({
      code: "offering.price",
      facts: { type: "m5, spot", price: 0.03, max_price: 0.02 },
    });
    const cheap = policy([places([{ ...SPOT, price: 0.01, maxPrice: 0.02 }])]);
    expect(bought(fixture.tell({ type: "policy", policy: cheap }))).toEqual(["m5, spot null"]);
  });

  test("is declined when its nodeset fits no limit with any of them", () => {
    const [wide, tall] = [
      offering("wide", { need: { instances: 1, cores: 4, ram: 1 } }),
      offering("tall", { need: { instances: 1, cores: 1, ram: 4 } }),
    ];
    const limits = { cores: 4, ram: 4 };
    const needs = new Map([["small", { instances: 1, cores: 1, ram: 1 }]]);
    const fixture = new SchedulerFixture(policy([places([wide, tall], { limits, needs })]));
    const after = request("100-1", { node_types: ["small", "small"] });
    expect(fixture.tell({ type: "request", id: "100-1", after })).toContainEqual(
      expect.objectContaining({ type: "decline", reason: "it would exceed quota with every offering" }),
    );
  });
});

describe("a request is not declined", () => {
  const sized = (type: string, cores: number, fields: Partial<LocalOffering> = {}) =>
    offering(type, { need: { instances: 1, cores }, ...fields });
  const [big, little] = [sized("big", 8, { weight: 10 }), sized("little", 4)];
  const two = { node_types: ["small", "small"] };
  const limited = (cores: number, offerings: LocalPool["offerings"], fields: Partial<LocalPool> = {}) =>
    policy([
      pool({
        limits: { cores },
        offerings: offerings!,
        needs: new Map([...offerings!.keys()].map((label) => [label, { instances: 1, cores: 4 }])),
        ...fields,
      }),
    ]);

  test("because others use the quota for the moment", () => {
    const given = limited(100, new Map([["small", [big, little]]]));
    const quota = (cores: number) => ({
      ...given,
      providers: new Map(
        [...given.providers].map(([name, one]) => [
          name,
          { ...one, quota: { cores }, limits: { cores: 100 } },
        ]),
      ),
    });
    const fixture = new SchedulerFixture(quota(2));
    // With any gate closed the quota is not looked at before the offerings are.
    fixture.tell({ type: "failures", key: keyOf("other"), after: failed("capacity") });
    expect(fixture.request("100-1")).toEqual([]);
    expect(fixture.code("100-1")).toBe("capacity.provider");
    expect(bought(fixture.tell({ type: "policy", policy: quota(6) }))).toEqual(["little null"]);
  });

  test.each<[string, Partial<LocalOffering>, string]>([
    ["has no room in the cloud", {}, "offering.failing"],
    ["costs too much", { price: 1, maxPrice: 0.5 }, "offering.price"],
  ])("because the only offering that fits %s at present", (_, fields, code) => {
    const given = limited(12, new Map([["small", [big, { ...little, ...fields }]]]));
    const fixture = new SchedulerFixture(given);
    if (code === "offering.failing")
      fixture.tell({ type: "failures", key: keyOf("little"), after: failed("capacity") });
    expect(fixture.request("100-1", two)).toEqual([]);
    expect(fixture.code("100-1")).toBe(code);
    const open = limited(12, new Map([["small", [big, little]]]));
    const events = [
      { type: "failures", key: keyOf("little") } as const,
      { type: "policy", policy: open } as const,
    ];
    expect(bought(fixture.tell(...events))).toEqual(["little null", "little null"]);
  });

  test("because the best of one label leaves nothing for another", () => {
    const both = new Map([
      ["small", [big, little]],
      ["large", [little]],
    ]);
    const fixture = new SchedulerFixture(limited(10, both));
    expect(asks(fixture, "100-1", { node_types: ["small", "large"] })).toEqual([
      "little null",
      "little null",
    ]);
  });

  test("because an offering of another label is closed: the labels are tried together", () => {
    const both = new Map([
      ["small", [big, little]],
      ["large", [big, sized("tiny", 4)]],
    ]);
    const fixture = new SchedulerFixture(limited(12, both));
    fixture.tell({ type: "failures", key: keyOf("tiny"), after: failed("capacity") });
    expect(asks(fixture, "100-1", { node_types: ["small", "large"] })).toEqual(["little null", "big null"]);
  });
});

describe("a tenant's limit", () => {
  const sized = { big: 8, middle: 6, little: 4 };
  const offerings = Object.entries(sized).map(([type, cores]) =>
    offering(type, { weight: cores, need: { instances: 1, cores } }),
  );
  const world = (cores: number, fields: Partial<LocalPool> = {}) => {
    const needs = new Map([["small", { instances: 1, cores: 4 }]]);
    const tenantLimits = new Map([["t", { cores }]]);
    return new SchedulerFixture(policy([places(offerings, { needs, ...fields })], { tenantLimits }));
  };
  const mine = { tenant_name: "t" };

  test("is not the reason where the pool has no room", () => {
    const fixture = world(12, { limits: { cores: 14 } });
    // With any gate closed the pool is not looked at before the offerings are.
    fixture.tell({ type: "failures", key: keyOf("other"), after: failed("capacity") });
    expect(asks(fixture, "100-1", { tenant_name: "other" })).toEqual(["big null"]);
    expect(asks(fixture, "100-2", mine)).toEqual(["middle null"]);
    expect(asks(fixture, "100-3", mine)).toEqual([]);
    expect(fixture.code("100-3")).toBe("capacity.pool");
  });

  test("is waited for with the least that is open, not with what the best takes", () => {
    const fixture = world(13);
    fixture.tell({ type: "failures", key: keyOf("little"), after: failed("capacity") });
    expect(asks(fixture, "100-1", mine)).toEqual(["big null"]);
    expect(asks(fixture, "100-2", mine)).toEqual([]);
    expect(fixture.code("100-2")).toBe("capacity.tenant");
    expect(fixture.state.waits.line("tenant", "t").at(0)?.need?.cores).toBe(6);
  });

  test("counts the ready nodes of a request beside what is bought for it", () => {
    const fixture = world(8);
    fixture.tell({ type: "node", id: "0000000001", after: node("0000000001", { resources: { cores: 4 } }) });
    expect(asks(fixture, "100-1", { ...mine, node_types: ["small", "small"] })).toEqual([
      "0000000001 null",
      "little null",
    ]);
  });
});

describe("a launch whose offering the cloud refuses", () => {
  const wanted = (fields: object = {}) => ({
    ...{
      node: "0000000001",
      request: "100-1",
      label: "small",
      pool: "cloud/main",
      again: true,
      counted: true,
    },
    ...{ offering: { provider: "cloud", az: null, type: "m5, spot" }, limitMs: 60_000 },
    ...fields,
  });
  const works = { type: "failures", key: labelKey("small"), after: { tally: newTally(true) } } as const;
  const world = (given: LocalPool) => {
    const fixture = new SchedulerFixture(policy([given]));
    fixture.tell(works);
    const building = { state: "building", allocated_to: "100-1", resources: { instances: 1, spots: 1 } };
    fixture.tell({ type: "node", id: "0000000001", after: node("0000000001", building, ["us"]) });
    return fixture;
  };

  test("goes on as the next best, which its record is to show", () => {
    const fixture = world(places([SPOT, offering("dear", { price: 1 }), FIXED]));
    const without = ["m5, spot"];
    expect(fixture.tell({ type: "launch-wanted", launch: wanted({ without }) })).toEqual([
      {
        ...{ type: "launch", node: "0000000001", probe: false },
        instead: { type: "m5", need: { instances: 1 } },
      },
    ]);
    expect(fixture.state.usage.held("0000000001")).toEqual({ instances: 1 });
  });

  test("gives what it takes less to a request that waits for it", () => {
    const smaller = offering("little", { need: { instances: 1, spots: 1 } });
    const limits = { spots: 9 };
    const fixture = new SchedulerFixture(policy([places([SPOT, smaller], { limits })]));
    fixture.tell(works);
    const building = { state: "building", allocated_to: "100-1", resources: { instances: 1, spots: 9 } };
    fixture.tell({ type: "node", id: "0000000001", after: node("0000000001", building, ["us"]) });
    fixture.tell({ type: "failures", key: keyOf("m5, spot"), after: failed("capacity") });
    expect(asks(fixture, "100-2")).toEqual([]);
    expect(bought(fixture.tell({ type: "launch-wanted", launch: wanted() }))).toEqual(["little null"]);
  });

  test("also when it has closed since the plan; as itself while it is open", () => {
    const fixture = world(places([SPOT, FIXED]));
    expect(fixture.tell({ type: "launch-wanted", launch: wanted() })).toEqual([
      { type: "launch", node: "0000000001", probe: false },
    ]);
    fixture.tell({ type: "failures", key: keyOf("m5, spot"), after: failed("capacity") });
    expect(fixture.tell({ type: "launch-wanted", launch: wanted() })).toMatchObject([
      { type: "launch", instead: { type: "m5" } },
    ]);
  });

  test.each<[string, readonly LocalOffering[], object]>([
    ["has no other", [SPOT], {}],
    ["costs too much otherwise", [SPOT, { ...FIXED, maxPrice: 0.05 }], {}],
    ["has no room otherwise", [SPOT, { ...FIXED, need: { instances: 2 } }], { limits: { instances: 1 } }],
    ["is sold otherwise only in another zone", [SPOT, { ...FIXED, zone: "b" }], {}],
  ])("is given up when the label %s, and its request is planned again", (_, offerings, fields) => {
    const fixture = world(places(offerings, fields));
    expect(fixture.tell({ type: "launch-wanted", launch: wanted({ without: ["m5, spot"] }) })).toMatchObject([
      { type: "refuse-launch", why: expect.stringContaining("no room") },
    ]);
  });
});

test("a nodeset of many labels whose offerings fit no limit together is declined without a try of all combinations", () => {
  const labels = Array.from({ length: 12 }, (_, at) => `label-${at}`);
  const offerings = Array.from({ length: 10 }, (_, at) =>
    offering(`type-${at}`, {
      need: { instances: 1, ...(at % 2 === 0 ? { cores: 9, ram: 1 } : { cores: 1, ram: 9 }) },
    }),
  );
  const many = pool({
    labels: new Set(labels),
    needs: new Map(labels.map((label) => [label, { instances: 1, cores: 1, ram: 1 }])),
    offerings: new Map(labels.map((label) => [label, offerings])),
    limits: { cores: 59, ram: 59 },
  });
  const fixture = new SchedulerFixture(policy([many]));
  const after = request("100-1", { node_types: labels });
  expect(fixture.tell({ type: "request", id: "100-1", after })).toMatchObject([
    { type: "decline", reason: "it would exceed quota with every offering" },
  ]);
});

test("with shares, a price that is read takes no turn from the head of a queue", () => {
  const shares = { tenants: new Map(), clients: new Map() };
  const priced = (price: number) =>
    policy([places([SPOT, { ...FIXED, price }], { limits: { instances: 3 } })], { shares });
  const fixture = new SchedulerFixture(priced(0.1));
  const of = (tenant: string, count: number) => ({
    tenant_name: tenant,
    node_types: Array.from({ length: count }, () => "small"),
  });
  asks(fixture, "100-1", of("a", 1));
  asks(fixture, "100-2", of("b", 1));
  asks(fixture, "100-3", of("b", 3));
  const since = () => fixture.state.requests.of("100-3")?.headSince;
  expect([fixture.code("100-3"), since()]).toEqual(["capacity.pool", 0]);
  // A has less than b would have with it, but what is free is kept.
  asks(fixture, "100-4", of("a", 1));
  fixture.now = 1_000;
  fixture.tell({ type: "policy", policy: priced(0.01) });
  expect([fixture.state.pools.get("cloud/main")?.blocked?.id, since()]).toEqual(["100-3", 0]);
});
