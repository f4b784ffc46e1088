import { offeringKey } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { type LocalReuse, mayHave, newTally } from "../src/index.ts";
import { node, policy, pool, request, SchedulerFixture } from "./world.ts";

const HOUR = 3_600_000;
const ID = "0000000001";
const reuse: LocalReuse = {
  ...{ settings: "now", times: 2, forMs: HOUR, idleMs: 60_000 },
  forAll: false,
};

function fixture(
  fields: Partial<LocalReuse> = {},
  of: Parameters<typeof pool>[0] = {},
  maxReadyAgeMs?: number,
) {
  const local = pool({ reuse: new Map([["small", { ...reuse, ...fields }]]), ...of });
  const labels =
    maxReadyAgeMs === undefined
      ? new Map()
      : new Map([["small", { name: "small", minReady: 0, maxReadyAgeMs }]]);
  return new SchedulerFixture(policy([local], { labels }));
}

/** A node of Zuul's that it gave back, with what its record notes. */
const used = (note: object | null = {}, fields: object = {}) => ({
  state: "used",
  allocated_to: "100-0000000001",
  tenant_name: "t1",
  requestor: "zuul",
  driver_data:
    note === null ? null : { nodeyard: { reuse: { settings: "now", since: 0, times: 0, ...note } } },
  ...fields,
});
const free = (note: object = {}) => used({ times: 1, ...note }, { state: "ready", allocated_to: null });
const only = { tenant: "t1", client: "zuul" };

describe("a node that was given back", () => {
  test("is checked once its user's lock is gone, and not deleted meanwhile", () => {
    const { tell, node } = bound(fixture());
    expect(node(used(), ["c"])).toEqual([]);
    expect(node(used())).toEqual([{ type: "check", node: ID, version: 0 }]);
    expect(node(used(), ["ours"])).toEqual([]);
    expect(
      node({ ...used({ times: 1, checking: true }), state: "building", allocated_to: null }, ["ours"]),
    ).toEqual([]);
    expect(node(free({ only }))).toEqual([]);
    expect(tell({ type: "checked", node: ID })).toEqual([]);
  });

  test("is checked again after a pause when another client had its lock", () => {
    const own = fixture();
    own.node(ID, used());
    expect(own.tell({ type: "checked", node: ID, retryMs: 250 })).toEqual([]);
    expect(own.wait(250)).toMatchObject([{ type: "check" }]);
  });

  test("is deleted where its launcher died while it was checked", () => {
    const { node } = bound(fixture());
    const checked = { ...used({ times: 1, checking: true }), state: "building", allocated_to: null };
    expect(node(checked)).toMatchObject([{ type: "delete" }]);
  });

  for (const [why, note, fields, of] of [
    ["its label does not say so", {}, {}, { reuse: new Map() }],
    ["its label cannot be launched", {}, {}, { unavailable: new Map([["small", "gone"]]) }],
    ["it was launched before its label said so", null, {}, {}],
    ["it was launched by other settings", { settings: "then" }, {}, {}],
    ["it was used again as often as it may be", { times: 2 }, {}, {}],
    ["nothing is known of its user", {}, { requestor: null }, {}],
    ["it has a comment", {}, { comment: "look at this" }, {}],
    ["it was on hold", {}, { hold_job: "t p j r" }, {}],
    ["its lease did not end well", {}, { requestor: "Nodeyard:lease:abc", user_data: { client: "me" } }, {}],
    ["its lease has no owner", {}, { requestor: "Nodeyard:lease:abc" }, {}],
    ["its note cannot be read", { only: { tenant: 1 } }, {}, {}],
    ["more is used than the limit", {}, {}, { limits: { instances: 0 } }],
  ] as const)
    test(`is deleted at once where ${why}`, () => {
      const { node } = bound(fixture({}, of));
      expect(node(used(note, fields))).toMatchObject([{ type: "delete", node: ID }]);
    });

  test("of a pool that others serve is left to them for a minute, and a free one for a day; one without a note goes at once", () => {
    const own = fixture();
    const elsewhere = { pool: "other" };
    expect(own.node("0000000002", used(null, elsewhere))).toMatchObject([{ type: "delete" }]);
    expect(own.node(ID, used({}, elsewhere))).toEqual([]);
    expect(own.wait(59_999)).toEqual([]);
    expect(own.wait(1)).toMatchObject([{ type: "delete", node: ID }]);
    const kept = fixture();
    kept.node(ID, { ...free({ only }), ...elsewhere });
    expect(kept.wait(86_399_999)).toEqual([]);
    expect(kept.wait(86_400_000)).toMatchObject([{ type: "delete", node: ID }]);
  });

  test("stays free where its label cannot be launched for the moment", () => {
    const own = fixture({}, { unavailable: new Map([["small", "its image is not listed"]]) });
    expect(own.node(ID, free({ only }))).toEqual([]);
  });

  test("by a lease that ended well is checked", () => {
    const note = { nodeyard: { returned: "back", reuse: { settings: "now", since: 0, times: 0 } } };
    const of = { requestor: "Nodeyard:lease:abc", user_data: { client: "me" }, driver_data: note };
    expect(bound(fixture()).node(used({}, of))).toMatchObject([{ type: "check" }]);
  });

  test("is deleted when its hours, or max-ready-age, are over since it was ready first, and while that is in doubt", () => {
    for (const own of [fixture(), fixture({ forMs: 9 * HOUR }, {}, HOUR)]) {
      own.now = HOUR - 1;
      expect(own.node(ID, used())).toMatchObject([{ type: "check" }]);
      own.now = HOUR;
      expect(own.node("0000000002", used())).toMatchObject([{ type: "delete" }]);
    }
    const own = fixture();
    own.tell({ type: "ages", trusted: false });
    expect(own.node(ID, used())).toMatchObject([{ type: "delete" }]);
  });

  test("makes room for the first request in line, unless that may have it", () => {
    for (const [wanted, checked] of [
      [{ tenant_name: "t2", requestor: "zuul" }, false],
      [{ tenant_name: "t1", requestor: "zuul", node_types: ["large"] }, false],
      [{ tenant_name: "t1", requestor: "zuul" }, true],
    ] as const) {
      const own = fixture({}, { limits: { instances: 1 } });
      own.node(ID, used(), ["user"]);
      own.request("100-0000000002", wanted);
      expect(own.node(ID, used())).toMatchObject([{ type: checked ? "check" : "delete" }]);
    }
  });
});

describe("a node that was given back, and makes room for others", () => {
  const other = { tenant_name: "t2", requestor: "zuul" };

  test("does not where it is the limit of concurrent launches that they wait for; its last user gets it past them", () => {
    const given = policy([pool({ reuse: new Map([["small", reuse]]) })]);
    const cloud = { ...given.providers.get("cloud")!, maxConcurrency: 1 };
    const own = new SchedulerFixture({ ...given, providers: new Map([["cloud", cloud]]) });
    own.node("0000000002", { state: "building", allocated_to: "100-0000000009" }, ["other"]);
    own.request("100-0000000001", other);
    expect(own.code("100-0000000001")).toBe("capacity.concurrency");
    expect(own.node(ID, used())).toMatchObject([{ type: "check" }]);
    own.node(ID, free({ only }));
    own.tell({ type: "checked", node: ID });
    expect(own.request("100-0000000002", { tenant_name: "t1", requestor: "zuul" })).toMatchObject([
      { type: "accept", nodes: [{ reuse: ID }] },
    ]);
  });

  test("does so if they lack it: of several that come back at once, only as many as they lack are deleted", () => {
    const own = fixture({}, { limits: { instances: 3 } });
    const ids = [ID, "0000000002", "0000000003"];
    for (const id of ids) own.node(id, used(), ["user"]);
    own.request("100-0000000001", other);
    const actions = ids.flatMap((id) => own.node(id, used()));
    expect(actions).toMatchObject([{ type: "delete", node: ID }, { type: "check" }, { type: "check" }]);
  });

  test("does so for another pool of its provider, whose quota is used up", () => {
    for (const [limits, type] of [
      [{}, "delete"],
      [{ instances: 1 }, "check"],
    ] as const) {
      const small = pool({ labels: new Set(["small"]), reuse: new Map([["small", reuse]]) });
      const large = pool({ name: "other", labels: new Set(["large"]), limits });
      const given = policy([small, large]);
      const cloud = { ...given.providers.get("cloud")!, quota: { instances: 2 } };
      const own = new SchedulerFixture({ ...given, providers: new Map([["cloud", cloud]]) });
      own.node("0000000002", { state: "in-use", pool: "other", type: ["large"] }, ["user"]);
      own.node(ID, used(), ["user"]);
      own.request("100-0000000001", { ...other, node_types: ["large"] });
      expect(own.node(ID, used())).toMatchObject([{ type }]);
    }
  });

  test("does so where its cloud has no room for others, and not where it fails otherwise", () => {
    for (const [kind, type] of [
      ["capacity", "delete"],
      ["timeout", "check"],
    ] as const) {
      const own = fixture();
      const key = offeringKey({ provider: "cloud", az: null, type: "small" });
      const last = { kind, error: "no room" };
      const tally = { ...newTally(), row: 5, since: 0, last };
      own.tell({
        type: "failures",
        key,
        after: { tally, pause: { why: "failures", opens: 1, until: HOUR } },
      });
      own.request("100-0000000001", other);
      expect(own.code("100-0000000001")).toBe("offering.failing");
      expect(own.node(ID, used())).toMatchObject([{ type }]);
    }
  });
});

describe("a node that has passed", () => {
  const asks = (own: SchedulerFixture, fields: object) => own.request("100-0000000002", fields);
  const takes = [{ type: "accept", nodes: [{ reuse: ID }] }];
  const launches = [{ type: "accept", nodes: [{ launch: {} }] }];

  test("goes to its last user, and to nobody else", () => {
    const other = fixture();
    other.node(ID, free({ only }));
    expect(asks(other, { tenant_name: "t2", requestor: "zuul" })).toMatchObject(launches);
    const client = fixture();
    client.node(ID, free({ only }));
    expect(asks(client, { tenant_name: "t1", requestor: "other" })).toMatchObject(launches);
    const same = fixture();
    same.node(ID, free({ only }));
    expect(asks(same, { tenant_name: "t1", requestor: "zuul" })).toMatchObject(takes);
    const all = fixture({ forAll: true });
    all.node(ID, free());
    expect(asks(all, { tenant_name: "t2" })).toMatchObject(takes);
  });

  test("is found behind those of others, and before a spare", () => {
    const own = fixture();
    own.node("0000000000", free({ only: { tenant: "t2", client: "zuul" } }));
    own.node(ID, free({ only }));
    own.node("0000000002", used({}, { state: "ready", allocated_to: null }));
    expect(asks(own, { tenant_name: "t1", requestor: "zuul" })).toMatchObject(takes);
  });

  test("is a spare where everybody may have it, and none where one user may", () => {
    const labels = new Map([
      ["small", { name: "small", minReady: 1, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
    ]);
    const local = (forAll: boolean) => pool({ reuse: new Map([["small", { ...reuse, forAll }]]) });
    const all = new SchedulerFixture(policy([local(true)], { labels }));
    all.tell({ type: "min-ready-requested", label: "small" });
    expect(all.node(ID, free())).toEqual([]);
    const kept = new SchedulerFixture(policy([local(false)]));
    kept.node(ID, free({ only }));
    expect(kept.tell({ type: "policy", policy: policy([local(false)], { labels }) })).toMatchObject([
      { type: "min-ready", count: 1 },
    ]);
  });

  test("and that everybody might have goes to nobody and is deleted once its label keeps nodes for their users", () => {
    const own = fixture({ forAll: true });
    own.node(ID, free());
    own.tell({ type: "ages", trusted: false });
    const tightened = policy([pool({ reuse: new Map([["small", reuse]]) })]);
    // Its deletion waits while ages are in doubt.
    expect(own.tell({ type: "policy", policy: tightened })).toEqual([]);
    expect(asks(own, { tenant_name: "t2" })).toMatchObject(launches);
    expect(own.tell({ type: "ages", trusted: true })).toMatchObject([{ type: "delete", node: ID }]);
    // Nor where the request was planned before.
    const asked = request("100-0000000003", { tenant_name: "t2" }).record;
    expect(mayHave(node(ID, free()).record, asked, false)).toBe(false);
    expect(mayHave(node(ID, free()).record, asked, true)).toBe(true);
  });

  test("is not suspended as a spare: its hours would pass while it sleeps", () => {
    const all = policy([pool({ reuse: new Map([["small", { ...reuse, forAll: true }]]) })]);
    const spares = { min: 2, max: 2, share: 0, times: [], target: null, idleMs: HOUR, suspended: true };
    const small = { name: "small", minReady: 0, maxReadyAgeMs: Number.POSITIVE_INFINITY, spares };
    const cloud = { ...all.providers.get("cloud")!, suspends: true };
    const own = new SchedulerFixture({
      ...all,
      providers: new Map([["cloud", cloud]]),
      labels: new Map([["small", small]]),
    });
    own.tell({ type: "min-ready-requested", label: "small" });
    const fresh = "0000000002";
    expect(own.node(ID, free())).toEqual([]);
    expect(own.node(fresh, used({}, { state: "ready", allocated_to: null }))).toMatchObject([
      { type: "suspend", node: fresh },
    ]);
  });

  test("is deleted when nobody took it for its time, when its hours are over, and when its label changed", () => {
    const idle = fixture();
    idle.node(ID, free({ only }));
    expect(idle.wait(59_999)).toEqual([]);
    expect(idle.wait(1)).toMatchObject([{ type: "delete", node: ID }]);
    const old = fixture({ idleMs: 9 * HOUR });
    old.now = HOUR - 1000;
    old.node(ID, { ...free({ only }), state_time: HOUR / 1000 - 1 });
    expect(old.wait(999)).toEqual([]);
    expect(old.wait(1)).toMatchObject([{ type: "delete" }]);
    for (const fields of [{ settings: "later" }, { times: 0 }]) {
      const changed = fixture();
      changed.node(ID, free({ only }));
      const local = pool({ reuse: new Map([["small", { ...reuse, ...fields }]]) });
      expect(changed.tell({ type: "policy", policy: policy([local]) })).toMatchObject([{ type: "delete" }]);
    }
    // One that was never used stays as long as any other.
    const fresh = fixture();
    fresh.node(ID, used({}, { state: "ready", allocated_to: null }));
    expect(fresh.wait(9 * HOUR)).toEqual([]);
  });
});

/** One node of a fixture. */
function bound(own: SchedulerFixture) {
  return {
    node: (fields: object, contenders: readonly string[] = []) => own.node(ID, fields, contenders),
    tell: own.tell.bind(own),
  };
}
