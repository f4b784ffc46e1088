import { describe, expect, test } from "vitest";
import { type LocalProvider, standingsOf, standingsOfLabel } from "../../src/scheduler/index.ts";
import { Desk, policy, pool, request } from "./world.ts";

const id = (number: number) => `200-${String(number).padStart(10, "0")}`;

function provider(name: string, fields: Partial<LocalProvider> = {}): [string, LocalProvider] {
  return [name, { name, maxConcurrency: Number.POSITIVE_INFINITY, quota: {}, ...fields }];
}

/** By pool, without what is told of each place in line. */
function brief(standings: ReturnType<typeof standingsOf>) {
  return Object.fromEntries(standings.map(({ pool, outlook, code }) => [pool, `${outlook} ${code}`]));
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
    const desk = new Desk(policy(pools, { providers }));
    desk.node("0000000001", { provider: "busy", state: "in-use" }, ["x"]);
    desk.request(id(1), { declined_by: ["launcher-other/main"] });
    const before = structuredClone([...desk.state.verdicts]);
    const entry = request(id(1), { declined_by: ["launcher-other/main"] });
    expect(brief(standingsOf(desk.state, desk.at, entry))).toEqual({
      "full/main": "declines pool.declines",
      "inert/main": "waits provider.inert",
      "other/main": "declines pool.declined",
      "busy/main": "waits capacity.pool",
      "lab/main": "waits nodes.too-few",
    });
    expect([...desk.state.verdicts]).toEqual(before);
    expect(desk.tell({ type: "tick" })).toEqual([]);
  });

  test("a label: what would become of a request that came now", () => {
    const desk = new Desk(policy([pool(), pool({ provider: "other", labels: new Set(["large"]) })]));
    expect(brief(standingsOfLabel(desk.state, desk.at, "small"))).toEqual({
      "cloud/main": "can pool.can",
      "other/main": "lacks pool.lacks-label",
    });
    expect(desk.state.waiting.size).toBe(0);
  });

  test("places in line are counted from the front, with the time and facts of what was noted", () => {
    const desk = new Desk(policy([pool({ limits: { instances: 1 } })]));
    desk.node("0000000001", { state: "in-use" }, ["x"]);
    desk.now = 5_000;
    for (const number of [1, 2, 3]) desk.request(id(number));
    desk.now = 60_000;
    const standing = (number: number) => standingsOf(desk.state, desk.at, request(id(number)))[0];
    expect(standing(1)).toMatchObject({ code: "capacity.pool", since: 5_000, position: 1, waiting: 3 });
    expect(standing(3)).toMatchObject({ outlook: "waits", position: 3, waiting: 3 });
    desk.request(id(3), { relative_priority: -1 });
    expect(standingsOf(desk.state, desk.at, request(id(3), { relative_priority: -1 }))[0]).toMatchObject({
      position: 1,
    });
  });
});

describe("a cloud whose API fails", () => {
  const used = { instances: 1 };
  const desk = (fields: Partial<LocalProvider>) => {
    const providers = new Map([provider("cloud", { quota: used, limits: used, readAt: 1_000, ...fields })]);
    const made = new Desk(policy([pool()], { providers }));
    made.node("0000000001", { state: "in-use" }, ["x"]);
    made.request(id(1));
    return made;
  };

  test("a quota that was read says when", () => {
    expect(desk({}).state.verdicts.get(id(1))).toMatchObject({
      code: "capacity.provider",
      facts: { quota_read_at: 1_000, limit: 1, used: 1 },
    });
  });

  test("it is named, with since when and why, and never called quota", () => {
    const failing = { since: 7_000, error: "503 from the cloud" };
    expect(desk({ failing }).state.verdicts.get(id(1))).toMatchObject({
      code: "provider.failing",
      facts: { failing_since: 7_000, error: "503 from the cloud", quota_read_at: 1_000 },
    });
  });

  test("it keeps nobody from what needs no reading", () => {
    const failing = { since: 7_000, error: "503 from the cloud" };
    const made = desk({ failing });
    expect(made.node("0000000002")[0]).toMatchObject({ type: "accept", request: id(1) });
  });
});
