import { describe, expect, test } from "vitest";
import { component, componentOf, node, policy, pool, request, SchedulerFixture } from "./world.ts";

const id = (number: number) => `100-${String(number).padStart(10, "0")}`;
const nodeId = (number: number) => String(number).padStart(10, "0");

describe("min-ready of several launchers", () => {
  const labels = new Map([
    ["small", { name: "small", minReady: 2, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
  ]);
  const asked = (actions: readonly { type: string }[]) => actions.filter(({ type }) => type === "min-ready");
  const ours = pool();
  const us = { ...componentOf(ours), key: "pool/b0000000002" };
  const them = component("pool/a0000000001");

  test("the one that is registered longest asks; the next only when it is still short later", () => {
    const fixture = new SchedulerFixture(policy([ours], { labels }), [them, us]);
    expect(asked(fixture.tell({ type: "tick" }))).toEqual([]);
    expect(asked(fixture.wait(9_999))).toEqual([]);
    expect(asked(fixture.wait(1))).toEqual([{ type: "min-ready", label: "small", count: 2 }]);
  });

  test("the turns begin anew when a label can be made again", () => {
    const fixture = new SchedulerFixture(policy([ours], { labels }), [them, us]);
    const closed = (unavailable: ReadonlyMap<string, string>) =>
      asked(fixture.tell({ type: "policy", policy: policy([{ ...ours, unavailable }], { labels }) }));
    expect(asked(fixture.tell({ type: "tick" }))).toEqual([]);
    expect(closed(new Map([["small", "its image is gone"]]))).toEqual([]);
    expect(asked(fixture.wait(60_000))).toEqual([]);
    expect(closed(new Map())).toEqual([]);
    expect(asked(fixture.wait(9_999))).toEqual([]);
    expect(asked(fixture.wait(1))).toHaveLength(1);
  });

  test("a pool without room asks when a machine of any label goes, and when its head is held up no more (seed 480)", () => {
    const one = new Map([["small", { ...labels.get("small")!, minReady: 1 }]]);
    const full = { ...ours, limits: { instances: 2 } };
    const fixture = new SchedulerFixture(policy([full], { labels: one }), [us]);
    const large = { type: ["large"], state: "in-use", allocated_to: id(9) };
    for (const number of [1, 2])
      fixture.tell({ type: "node", id: nodeId(number), after: node(nodeId(number), large) });
    expect(asked(fixture.tell({ type: "min-ready-requested", label: "small" }))).toEqual([]);
    expect(asked(fixture.gone("node", nodeId(1)))).toHaveLength(1);

    const blocked = new SchedulerFixture(policy([full], { labels: one }), [us]);
    blocked.tell({ type: "node", id: nodeId(1), after: node(nodeId(1), large) });
    blocked.request(id(1), { node_types: ["large", "large"] });
    expect(asked(blocked.tell({ type: "min-ready-requested", label: "small" }))).toEqual([]);
    expect(asked(blocked.gone("request", id(1)))).toHaveLength(1);
  });

  test("an idle node that is deleted to make room for another label is replaced (seed 559)", () => {
    const one = new Map([["small", { ...labels.get("small")!, minReady: 1 }]]);
    const full = { ...ours, limits: { instances: 1 } };
    const roomy = pool({ key: "west/main", provider: "west", name: "main", labels: new Set(["small"]) });
    const fixture = new SchedulerFixture(policy([full, roomy], { labels: one }), [us]);
    fixture.tell({ type: "node", id: nodeId(1), after: node(nodeId(1)) });
    expect(asked(fixture.tell({ type: "min-ready-requested", label: "small" }))).toEqual([]);
    const actions = fixture.request(id(1), { node_types: ["large"] });
    expect(actions).toContainEqual(expect.objectContaining({ type: "delete", node: nodeId(1) }));
    expect(asked(actions)).toEqual([{ type: "min-ready", label: "small", count: 1 }]);
  });

  test("what the first asked for is not asked for again; when it goes, the next asks at once", () => {
    const fixture = new SchedulerFixture(policy([ours], { labels }), [them, us]);
    const minReady = { requestor: "NodePool:min-ready", reuse: false, state: "pending" };
    for (const number of [1, 2])
      fixture.tell({
        type: "request",
        id: `900-${nodeId(number)}`,
        after: request(`900-${nodeId(number)}`, minReady),
      });
    expect(asked(fixture.wait(60_000))).toEqual([]);
    fixture.gone("request", `900-${nodeId(1)}`);
    expect(asked(fixture.tell({ type: "component", key: them.key }))).toEqual([
      { type: "min-ready", label: "small", count: 1 },
    ]);
  });

  test("idle nodes of a request that another launcher may get are replaced when it is ours", () => {
    const fixture = new SchedulerFixture(policy([ours], { labels }), [us]);
    for (const number of [1, 2])
      fixture.tell({ type: "node", id: nodeId(number), after: node(nodeId(number)) });
    expect(asked(fixture.request(id(1)))).toEqual([]);
    // Whatever lets it look at the label again.
    expect(asked(fixture.tell({ type: "min-ready-requested", label: "small" }))).toEqual([]);
    expect(asked(fixture.tell({ type: "started", request: id(1) }))).toEqual([
      { type: "min-ready", label: "small", count: 1 },
    ]);
  });

  test("after all pools declined, nothing is asked for a while", () => {
    const fixture = new SchedulerFixture(policy([ours], { labels }), [us]);
    const failed = { requestor: "NodePool:min-ready", reuse: false, state: "failed" };
    fixture.request("900-0000000001", failed);
    expect(asked(fixture.tell({ type: "min-ready-requested", label: "small" }))).toEqual([]);
    expect(asked(fixture.gone("request", "900-0000000001"))).toEqual([]);
    expect(asked(fixture.wait(14_999))).toEqual([]);
    expect(asked(fixture.wait(1))).toHaveLength(1);
  });
});
