import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Durations, outlooksOf } from "../src/index.ts";
import { policy, pool, request, SchedulerFixture, unseen } from "./world.ts";

const MINUTE = 60_000;
const id = (number: number) => `200-${String(number).padStart(10, "0")}`;
const node = (number: number) => String(number).padStart(10, "0");
const always = (ms: number) => Array.from({ length: 12 }, () => ms);

/** Launches of a minute, uses of ten. */
const steady: Durations = {
  ...unseen,
  used: () => always(10 * MINUTE),
  launched: () => always(MINUTE),
};

/** A pool that `servers` users fill, since a time, minutes ago; `labels` of the requests that wait. */
function full(sinceMinutes: readonly number[], fields = {}) {
  const fixture = new SchedulerFixture(
    policy([pool({ limits: { instances: sinceMinutes.length }, ...fields })]),
  );
  fixture.now = 100 * MINUTE;
  for (const [number, minutes] of sinceMinutes.entries())
    fixture.node(
      node(number),
      {
        state: "in-use",
        state_time: (100 - minutes) * 60,
        allocated_to: "x",
        resources: { instances: 1, cores: 1 },
      },
      ["c"],
    );
  const ask = (number: number, given: object = {}) => {
    fixture.request(id(number), given);
    return (durations: Durations) =>
      outlooksOf(fixture.state, fixture.at, request(id(number), given), durations)[0]!.forecast;
  };
  return { fixture, ask };
}

/** All courses are the same where nothing differs. */
const only = (forecast: unknown) => {
  const times = new Set(forecast as readonly number[]);
  return times.size === 1 ? [...times][0] : forecast;
};

describe("when a request gets its nodes", () => {
  test("with room: after a launch; with a node that is there: at once", () => {
    const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 1 } })]));
    const ask = () => outlooksOf(fixture.state, fixture.at, request(id(1)), steady)[0]!.forecast;
    expect(only(ask())).toBe(MINUTE);
    fixture.node(node(1));
    expect(only(ask())).toBe(0);
  });

  test("in a full pool: when users give back what all before it need, and it", () => {
    const { ask } = full([8, 5]);
    const [first, second, third] = [ask(1), ask(2), ask(3)];
    expect(only(first(steady))).toBe(3 * MINUTE);
    expect(only(second(steady))).toBe(6 * MINUTE);
    // The first one's node is there after three minutes, and is used for ten.
    expect(only(third(steady))).toBe((2 + 1 + 10 + 1) * MINUTE);
  });

  test("a request for two waits for both, and a larger node for as much as it takes", () => {
    const sizes = {
      limits: { cores: 2 },
      needs: new Map([
        ["small", { cores: 1 }],
        ["large", { cores: 2 }],
      ]),
    };
    for (const wanted of [["small", "small"], ["large"]])
      expect(only(full([8, 5], sizes).ask(1, { node_types: wanted })(steady))).toBe(6 * MINUTE);
  });

  test("a lease ends when it expires at the latest", () => {
    const { ask } = full([1]);
    expect(only(ask(1)({ ...steady, leftOf: () => 2 * MINUTE }))).toBe(3 * MINUTE);
  });

  test("launches at once are as many as may be", () => {
    const many = policy([pool()], {
      providers: new Map([["cloud", { name: "cloud", maxConcurrency: 1, quota: {} }]]),
    });
    const fixture = new SchedulerFixture(many);
    for (const number of [1, 2, 3]) fixture.request(id(number));
    fixture.node(node(1), { state: "building", state_time: 0, allocated_to: id(1) }, ["c"]);
    fixture.now = MINUTE / 2;
    const [forecast] = outlooksOf(fixture.state, fixture.at, request(id(3)), steady).map(
      (each) => each.forecast,
    );
    expect(only(forecast)).toBe((0.5 + 1 + 1) * MINUTE);
  });

  test("hosts: the requests ahead in the line for the label, and when a host is returned", () => {
    const hosts = policy([pool({ provider: "lab", launches: false, inventory: new Map([["small", 2]]) })]);
    const fixture = new SchedulerFixture(hosts);
    fixture.now = 100 * MINUTE;
    for (const [number, minutes] of [8, 5].entries())
      fixture.node(
        node(number),
        { provider: "lab", state: "in-use", state_time: (100 - minutes) * 60, allocated_to: "x" },
        ["c"],
      );
    for (const number of [1, 2]) fixture.request(id(number));
    const ask = (number: number) =>
      outlooksOf(fixture.state, fixture.at, request(id(number)), steady)[0]!.forecast;
    expect(only(ask(1))).toBe(2 * MINUTE);
    expect(only(ask(2))).toBe(5 * MINUTE);
  });

  test("a request further back is never estimated earlier", () => {
    const minutes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 10, maxLength: 20 });
    fc.assert(
      fc.property(minutes, fc.integer({ min: 1, max: 5 }), (uses, servers) => {
        const { ask } = full(Array.from({ length: servers }, () => 0));
        const durations = { ...steady, used: () => uses.map((each) => each * MINUTE) };
        const asked = [1, 2, 3, 4].map((number) => ask(number));
        const middles = asked.flatMap((each) => {
          const forecast = each(durations);
          return typeof forecast === "string" || forecast === null ? [] : [forecast[forecast.length >> 1]!];
        });
        expect(middles).toEqual([...middles].sort((a, b) => a - b));
      }),
      { numRuns: 50 },
    );
  });
});

describe("there is no estimate", () => {
  test("without launches or uses that were seen", () => {
    expect(full([1]).ask(1)({ ...steady, launched: () => always(MINUTE).slice(0, 2) })).toBe("no-launches");
    expect(full([1]).ask(1)({ ...steady, used: () => always(MINUTE).slice(0, 9) })).toBe("no-uses");
  });

  test("where users keep nodes for very different times; where many do, they even out", () => {
    const uneven = {
      ...steady,
      used: () => [1, 1, 2, 3, 5, 8, 13, 40, 90, 300].map((each) => each * MINUTE),
    };
    expect(full([0]).ask(1)(uneven)).toBe("uneven");
    expect(full(Array.from({ length: 200 }, () => 0)).ask(1)(uneven)).toHaveLength(64);
  });

  test("where nodes are held, other pools want the same quota, or hosts of two labels are wanted", () => {
    const held = full([1]);
    held.fixture.node(node(0), { state: "hold", state_time: 1 });
    expect(held.ask(1)(steady)).toBe("held");

    const quota = new Map([["cloud", { name: "cloud", maxConcurrency: 9, quota: { instances: 1 } }]]);
    const two = new SchedulerFixture(
      policy([pool(), pool({ name: "other", labels: new Set(["large"]) })], { providers: quota }),
    );
    two.node(node(1), { state: "in-use", state_time: 1, allocated_to: "x" }, ["c"]);
    two.request(id(1));
    two.request(id(2), { node_types: ["large"] });
    expect(outlooksOf(two.state, two.at, request(id(1)), steady)[0]!.forecast).toBe("shared");

    const inventory = new Map([
      ["small", 1],
      ["large", 1],
    ]);
    const hosts = new SchedulerFixture(policy([pool({ provider: "lab", launches: false, inventory })]));
    const both = { node_types: ["small", "large"] };
    for (const [number, type] of ["small", "large"].entries())
      hosts.node(node(number), { provider: "lab", type: [type], state: "in-use", allocated_to: "x" }, ["c"]);
    hosts.request(id(1), both);
    expect(outlooksOf(hosts.state, hosts.at, request(id(1), both), steady)[0]!.forecast).toBe("mixed");
  });

  test("where so many wait before it that the question would hold up the launcher", () => {
    const { fixture, ask } = full([1]);
    const ids = Array.from({ length: 7_000 }, (_, at) => id(at));
    fixture.tell(...ids.map((each) => ({ type: "request" as const, id: each, after: request(each) })));
    expect(ask(6_000)(steady)).toHaveLength(8);
    expect(ask(6_900)(steady)).toBe("far");
  });

  test("of a launch that takes longer than all, or of what ends when an operator or a cloud wants it", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.request(id(1));
    fixture.now = 2 * MINUTE;
    const ask = () => outlooksOf(fixture.state, fixture.at, request(id(1)), steady)[0]!.forecast;
    expect(ask()).toBe("overdue");
    const inert = policy([pool()], {
      providers: new Map([["cloud", { name: "cloud", maxConcurrency: 0, quota: {} }]]),
    });
    const waits = new SchedulerFixture(inert);
    waits.request(id(1));
    expect(outlooksOf(waits.state, waits.at, request(id(1)), steady)[0]!.forecast).toBe("unforeseen");
  });
});
