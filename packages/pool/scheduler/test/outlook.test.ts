import { describe, expect, test } from "vitest";
import { type LocalProvider, outlooksOf, outlooksOfLabel } from "../src/index.ts";
import { policy, pool, request, SchedulerFixture, unseen } from "./world.ts";

const id = (number: number) => `200-${String(number).padStart(10, "0")}`;

function provider(name: string, fields: Partial<LocalProvider> = {}): [string, LocalProvider] {
  return [name, { name, maxConcurrency: Number.POSITIVE_INFINITY, quota: {}, ...fields }];
}

/** By pool, without what is told of each place in line. */
function brief(outlooks: ReturnType<typeof outlooksOf>) {
  return Object.fromEntries(outlooks.map(({ pool, outlook, code }) => [pool, `${outlook} ${code}`]));
}

describe("where a request stands in every pool", () => {
  const pools = [
    pool({ provider: "full", limits: { instances: 0 } }),
    pool({ provider: "inert" }),
    pool({ provider: "other", labels: new Set(["large"]) }),
    pool({ provider: "busy", limits: { instances: 1 } }),
    pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) }),
  ];
  const providers = new Map([
    provider("full"),
    provider("inert", { maxConcurrency: 0 }),
    provider("other"),
    provider("busy"),
    provider("lab"),
  ]);

  test("each pool says its own, and asking changes nothing", () => {
    const fixture = new SchedulerFixture(policy(pools, { providers }));
    fixture.node("0000000001", { provider: "busy", state: "in-use" }, ["x"]);
    fixture.request(id(1), { declined_by: ["launcher-other/main"] });
    const before = structuredClone([...fixture.verdicts()]);
    const entry = request(id(1), { declined_by: ["launcher-other/main"] });
    expect(brief(outlooksOf(fixture.state, fixture.at, entry, unseen))).toEqual({
      "full/main": "declines pool.declines",
      "inert/main": "waits provider.inert",
      "other/main": "declines pool.declined",
      "busy/main": "waits capacity.pool",
      "lab/main": "waits nodes.too-few",
    });
    expect([...fixture.verdicts()]).toEqual(before);
    expect(fixture.tell({ type: "tick" })).toEqual([]);
  });

  test("a label: what would become of a request that came now", () => {
    const fixture = new SchedulerFixture(
      policy([pool(), pool({ provider: "other", labels: new Set(["large"]) })]),
    );
    expect(brief(outlooksOfLabel(fixture.state, fixture.at, "small", unseen))).toEqual({
      "cloud/main": "can pool.can",
      "other/main": "lacks pool.lacks-label",
    });
    expect([...fixture.state.requests.waiting()].length).toBe(0);
  });

  test("places in line are counted from the front, with the time and facts of what was noted", () => {
    const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 1 } })]));
    fixture.node("0000000001", { state: "in-use" }, ["x"]);
    fixture.now = 5_000;
    for (const number of [1, 2, 3]) fixture.request(id(number));
    fixture.now = 60_000;
    const outlook = (number: number) => outlooksOf(fixture.state, fixture.at, request(id(number)), unseen)[0];
    expect(outlook(1)).toMatchObject({ code: "capacity.pool", since: 5_000, position: 1, waiting: 3 });
    expect(outlook(3)).toMatchObject({ outlook: "waits", position: 3, waiting: 3 });
    fixture.request(id(3), { relative_priority: -1 });
    expect(
      outlooksOf(fixture.state, fixture.at, request(id(3), { relative_priority: -1 }), unseen)[0],
    ).toMatchObject({
      position: 1,
    });
  });
});

describe("a cloud whose API fails", () => {
  const used = { instances: 1 };
  const fixture = (fields: Partial<LocalProvider>) => {
    const providers = new Map([provider("cloud", { quota: used, limits: used, readAt: 1_000, ...fields })]);
    const made = new SchedulerFixture(policy([pool()], { providers }));
    made.node("0000000001", { state: "in-use" }, ["x"]);
    made.request(id(1));
    return made;
  };

  test("a quota that was read says when", () => {
    expect(fixture({}).state.requests.of(id(1))?.verdict).toMatchObject({
      code: "capacity.provider",
      facts: { quota_read_at: 1_000, limit: 1, used: 1 },
    });
  });
});
