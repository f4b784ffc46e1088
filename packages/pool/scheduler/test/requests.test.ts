import { describe, expect, test } from "vitest";
import { OFFER_GRACE_MS, reduce } from "../src/index.ts";
import { component, componentOf, policy, pool, request as requestEntry, SchedulerFixture } from "./world.ts";

const accepted = (actions: readonly { type: string }[]) =>
  actions.flatMap((action) =>
    action.type === "accept" ? [(action as unknown as { request: string }).request] : [],
  );

describe("order", () => {
  test("priority prefix as text, relative priority, sequence (check 18)", () => {
    const main = pool({ limits: { instances: 1 } });
    const fixture = new SchedulerFixture(policy([main]));
    fixture.request("000-0000000000");
    fixture.request("200-0000000005");
    fixture.request("100-0000000001", { relative_priority: 7 });
    fixture.request("100-0000000002", { relative_priority: 3 });
    fixture.request("099-0000000009", { relative_priority: 5 });
    const served: string[] = [];
    for (let round = 0; round < 4; round++) {
      const before = round === 0 ? "000-0000000000" : served.at(-1)!;
      fixture.gone("request", before);
      served.push(...accepted(fixture.tell({ type: "handled", request: before })));
    }
    expect(served).toEqual(["099-0000000009", "100-0000000002", "100-0000000001", "200-0000000005"]);
  });
});

describe("nodes of a nodeset", () => {
  test("ready nodes are taken, oldest first, and what lacks is launched, in the order of node_types", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.node("0000000002");
    fixture.node("0000000001");
    const [action] = fixture.request("100-0000000001", { node_types: ["large", "small", "small", "small"] });
    expect(action).toMatchObject({
      type: "accept",
      nodes: [{ label: "large" }, { reuse: "0000000001" }, { reuse: "0000000002" }, { label: "small" }],
    });
  });

  test("reuse: false takes no ready node, and a locked, allocated or foreign node is never offered", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.node("0000000001");
    fixture.node("0000000002", {}, ["c"]);
    fixture.node("0000000003", { allocated_to: "100-0000000009" }, ["c"]);
    fixture.node("0000000004", { provider: "other" });
    const [first] = fixture.request("100-0000000001", { reuse: false });
    expect(first).toMatchObject({ nodes: [{ label: "small", launch: { instances: 1 } }] });
    const [second] = fixture.request("100-0000000002", { node_types: ["small", "small"] });
    expect(second).toMatchObject({ nodes: [{ reuse: "0000000001" }, { launch: { instances: 1 } }] });
  });
});

describe("declining", () => {
  test("while another launcher's pool can serve it, ours wait; when that pool is gone for the grace, ours decline", () => {
    const fixture = new SchedulerFixture(policy([pool()]), [
      componentOf(pool()),
      component("them", { providerName: "theirs", supportedLabels: ["arm"] }),
    ]);
    expect(fixture.request("100-0000000001", { node_types: ["arm"] })).toEqual([]);
    expect(fixture.code("100-0000000001")).toBe("yield.capable");
    expect(fixture.tell({ type: "component", key: "them" })).toEqual([]);
    expect(fixture.wait(OFFER_GRACE_MS - 1)).toEqual([]);
    expect(fixture.verdicts().get("100-0000000001")).toMatchObject({
      code: "offer.awaited",
      facts: { provider: "theirs" },
      nextTry: OFFER_GRACE_MS,
    });
    const [action] = fixture.wait(1);
    expect(action).toMatchObject({ type: "decline", pools: ["launcher-cloud/main"] });
  });

  test("an offer counts as gone for each request only as far as it could serve it, and not once its provider has spoken", () => {
    const theirs = component("them", { providerName: "theirs", supportedLabels: ["arm", "x86"] });
    const fixture = new SchedulerFixture(policy([pool()]), [componentOf(pool()), theirs]);
    fixture.tell({ type: "component", key: "them" });
    expect(fixture.request("100-0000000001", { node_types: ["arm", "x86"] })).toEqual([]);
    expect(fixture.request("100-0000000002", { node_types: ["arm", "mips"] })).toHaveLength(1);
    expect(
      fixture.request("100-0000000003", { node_types: ["arm"], declined_by: [theirs.record.id] }),
    ).toHaveLength(1);
    const again = component("again", { providerName: "theirs", supportedLabels: ["x86"] });
    fixture.tell({ type: "component", key: "again", after: again });
    expect(fixture.request("100-0000000004", { node_types: ["arm"] })).toEqual([]);
    fixture.tell({
      type: "component",
      key: "again",
      after: component("again", { ...again.record, supportedLabels: ["arm"] }),
    });
    expect(
      fixture.request("100-0000000005", { node_types: ["arm"], declined_by: [again.record.id] }),
    ).toHaveLength(1);
  });

  test("when the last undecided pool leaves, a request that all others declined is judged again", () => {
    const ours = pool();
    const fixture = new SchedulerFixture(policy([ours]), [componentOf(ours), component("them")]);
    expect(fixture.request("100-0000000001", { declined_by: [ours.id] })).toEqual([]);
    expect(fixture.tell({ type: "component", key: "them" })).toMatchObject([{ type: "decline", pools: [] }]);
  });

  test.each([
    [{ limits: { instances: 0 } }, "pool is disabled by max_servers"],
    [{ limits: { instances: 1 } }, "it would exceed quota (instances: 2, and the pool's limit is 1)"],
    [{ unavailable: new Map([["small", "flavor is gone"]]) }, "flavor is gone"],
  ])("what can never be is declined: %o", (fields, reason) => {
    const fixture = new SchedulerFixture(policy([pool(fields)]));
    expect(fixture.request("100-0000000001", { node_types: ["small", "small"] })).toMatchObject([
      { type: "decline", reason },
    ]);
  });
});

describe("other pools first", () => {
  test("a pool with a lower number goes first until it is paused (check 19)", () => {
    const ours = pool();
    const better = component("better", { priority: 50 });
    const fixture = new SchedulerFixture(policy([ours]), [componentOf(ours), better]);
    expect(fixture.request("100-0000000001")).toEqual([]);
    expect(fixture.code("100-0000000001")).toBe("yield.priority");
    const paused = component("better", { priority: 50, paused: true });
    expect(accepted(fixture.tell({ type: "component", key: "better", after: paused }))).toEqual([
      "100-0000000001",
    ]);
  });
});

describe("capacity", () => {
  test("a full pool pauses, waits for its head, and goes on when a node goes (check 8)", () => {
    const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 2 } })]));
    fixture.node("0000000001", { state: "in-use" }, ["c"]);
    fixture.node("0000000002", { state: "in-use" }, ["c"]);
    expect(fixture.request("100-0000000001")).toEqual([{ type: "pause", pool: "cloud/main", paused: true }]);
    expect(fixture.code("100-0000000001")).toBe("capacity.pool");
    const actions = fixture.gone("node", "0000000001");
    expect(accepted(actions)).toEqual(["100-0000000001"]);
    expect(actions).toContainEqual({ type: "pause", pool: "cloud/main", paused: false });
  });

  test("idle nodes of no use to the head make room, no more than needed (check 11)", () => {
    const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 2 } })]));
    fixture.node("0000000001");
    fixture.node("0000000002");
    const actions = fixture.request("100-0000000001", { node_types: ["large"] });
    expect(actions.filter((action) => action.type === "delete")).toEqual([
      { type: "delete", node: "0000000001", version: 0, why: "makes room for 100-0000000001" },
    ]);
    expect(fixture.tell({ type: "tick" })).toEqual([]);
    expect(fixture.node("0000000001", { state: "deleting" }, ["c"])).toEqual([]);
    expect(accepted(fixture.gone("node", "0000000001"))).toEqual(["100-0000000001"]);
  });

  test("reserved launches count until their records appear, then the records do, never both", () => {
    const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 2 } })]));
    fixture.request("100-0000000001", { node_types: ["small", "small"] });
    fixture.node("0000000001", { state: "init", allocated_to: "100-0000000001", resources: null });
    expect(fixture.state.usage.of("pool cloud/main")).toEqual({ instances: 2 });
    fixture.node("0000000002", { state: "init", allocated_to: "100-0000000001", resources: null });
    expect(fixture.state.usage.of("pool cloud/main")).toEqual({ instances: 2 });
    expect(fixture.state.usage.of("launching cloud")).toEqual({ instances: 2 });
  });

  test("behind a head that waits for its turn to launch, only what it does not want is given away", () => {
    const providers = new Map([["cloud", { name: "cloud", maxConcurrency: 1, quota: {} }]]);
    const fixture = new SchedulerFixture(policy([pool()], { providers }));
    fixture.node("0000000009", { state: "building" }, ["c"]);
    fixture.request("100-0000000001", { node_types: ["small", "small"] });
    expect(fixture.code("100-0000000001")).toBe("capacity.concurrency");
    fixture.request("100-0000000002", { node_types: ["small"] });
    fixture.request("100-0000000003", { node_types: ["large"] });
    expect(accepted(fixture.node("0000000001", { type: ["small"] }))).toEqual([]);
    expect(accepted(fixture.node("0000000002", { type: ["large"] }))).toEqual(["100-0000000003"]);
  });

  test("a tenant's limit delays its own requests, and no other tenant's (check 15)", () => {
    const fixture = new SchedulerFixture(
      policy([pool()], { tenantLimits: new Map([["t1", { instances: 2 }]]) }),
    );
    const two = { node_types: ["small", "small"] };
    expect(accepted(fixture.request("100-0000000001", { ...two, tenant_name: "t1" }))).toEqual([
      "100-0000000001",
    ]);
    expect(accepted(fixture.request("100-0000000002", { ...two, tenant_name: "t1" }))).toEqual([]);
    expect(fixture.code("100-0000000002")).toBe("capacity.tenant");
    expect(accepted(fixture.request("100-0000000003", { ...two, tenant_name: "t2" }))).toEqual([
      "100-0000000003",
    ]);
    fixture.gone("request", "100-0000000001");
    expect(accepted(fixture.tell({ type: "handled", request: "100-0000000001" }))).toEqual([
      "100-0000000002",
    ]);
  });

  test("a pool without launches waits for a free node of the label, in order, and never declines for it", () => {
    const lab = pool({
      provider: "lab",
      launches: false,
      labels: new Set(["board"]),
      inventory: new Map([["board", 1]]),
    });
    const fixture = new SchedulerFixture(policy([lab]));
    expect(fixture.request("100-0000000001", { node_types: ["board"] })).toEqual([]);
    expect(fixture.request("100-0000000002", { node_types: ["board"] })).toEqual([]);
    expect(fixture.code("100-0000000001")).toBe("nodes.too-few");
    const free = { provider: "lab", type: ["board"] };
    expect(accepted(fixture.node("0000000001", free))).toEqual(["100-0000000001"]);
    fixture.gone("node", "0000000001");
    fixture.gone("request", "100-0000000001");
    expect(accepted(fixture.tell({ type: "handled", request: "100-0000000001" }))).toEqual([]);
    expect(accepted(fixture.node("0000000002", free))).toEqual(["100-0000000002"]);
    expect(fixture.request("100-0000000003", { node_types: ["board", "board"] })).toMatchObject([
      { type: "decline" },
    ]);
  });
});

describe("the life of a handler", () => {
  test("a retry is not looked at before its time", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.request("100-0000000001");
    expect(fixture.tell({ type: "handled", request: "100-0000000001", retryMs: 500 })).toEqual([]);
    expect(fixture.code("100-0000000001")).toBe("retry.later");
    expect(fixture.wait(499)).toEqual([]);
    expect(accepted(fixture.wait(1))).toEqual(["100-0000000001"]);
  });

  test("a request that another launcher accepted and put back between two looks is not paused: its version tells", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    const id = "100-0000000001";
    fixture.request(id);
    expect(fixture.tell({ type: "handled", request: id, retryMs: 30_000, putBack: true })).toEqual([]);
    // Another pool has declined it: one write.
    expect(fixture.request(id, { declined_by: ["other"] }, 1)).toEqual([]);
    expect(accepted(fixture.request(id, { declined_by: ["other"] }, 3))).toEqual([id]);
    // The same while this launcher still tries to get the lock.
    expect(fixture.request(id, { declined_by: ["other"] }, 5)).toEqual([]);
    expect(accepted(fixture.tell({ type: "handled", request: id, retryMs: 30_000 }))).toEqual([id]);
    expect(fixture.tell({ type: "handled", request: id, retryMs: 500 })).toEqual([]);
    expect(accepted(fixture.wait(500))).toEqual([id]);
  });

  test("what one that was put back needs is kept until it is tried again, or goes", () => {
    const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 3 } })]));
    const [first, second] = ["100-0000000001", "200-0000000002"] as const;
    expect(accepted(fixture.request(first, { node_types: ["small", "small", "small"] }))).toEqual([first]);
    fixture.tell({ type: "handled", request: first, retryMs: 500, putBack: true });
    expect(fixture.request(second)).not.toContainEqual(expect.objectContaining({ type: "accept" }));
    expect(fixture.state.requests.of(second)?.verdict).toMatchObject({
      code: "capacity.reserved",
      facts: { kept_for: first },
    });
    expect(accepted(fixture.wait(500))).toEqual([first]);
    fixture.tell({ type: "handled", request: first, retryMs: 500, putBack: true });
    expect(accepted(fixture.gone("request", first))).toEqual([second]);
  });

  test("a pending request without a handler is reset by the sweep, once at a time", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.request("100-0000000001", { state: "pending" });
    expect(fixture.tell({ type: "sweep" })).toEqual([{ type: "reset", request: "100-0000000001" }]);
    expect(fixture.tell({ type: "sweep" })).toEqual([]);
    fixture.tell({ type: "handled", request: "100-0000000001" });
    expect(fixture.tell({ type: "sweep" })).toEqual([{ type: "reset", request: "100-0000000001" }]);
  });

  test("a request that was put back while it was being reset has one handler at a time", () => {
    const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 1 } })]));
    fixture.request("100-0000000001");
    fixture.request("100-0000000002", { state: "pending" });
    fixture.tell({ type: "sweep" });
    fixture.request("100-0000000002");
    fixture.tell({ type: "handled", request: "100-0000000002" });
    expect(fixture.code("100-0000000002")).toBe("capacity.pool");
    expect(fixture.tell({ type: "sweep" })).toEqual([]);
    fixture.gone("request", "100-0000000001");
    expect(accepted(fixture.tell({ type: "handled", request: "100-0000000001" }))).toEqual([
      "100-0000000002",
    ]);
  });

  test("nothing is decided before the picture is complete, nor with one that is not", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.tell({ type: "complete", complete: false });
    expect(fixture.request("100-0000000001")).toEqual([]);
    expect(fixture.node("0000000001", { state: "used" })).toEqual([]);
    const actions = fixture.tell({ type: "complete", complete: true });
    expect(actions.map((action) => action.type).sort()).toEqual(["accept", "delete"]);
  });

  test("when the next to start goes, the one behind it starts", () => {
    const fixture = new SchedulerFixture(policy([pool()], { maxStarting: 1 }));
    const [first, next, last] = ["100-0000000001", "100-0000000002", "100-0000000003"] as const;
    for (const id of [first, next, last]) fixture.request(id);
    expect(fixture.code(next)).toBe("queue.starting");
    expect(accepted(fixture.gone("request", next))).toEqual([]);
    expect(accepted(fixture.tell({ type: "started", request: first }))).toEqual([last]);
  });

  test("a lost session gives everything up: reservations are freed, requests are looked at again", () => {
    const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 1 } })]));
    fixture.request("100-0000000001");
    const actions = fixture.tell({ type: "session-lost" });
    expect(accepted(actions)).toEqual(["100-0000000001"]);
    expect(fixture.state.usage.of("pool cloud/main")).toEqual({ instances: 1 });
  });

  test("an event that makes no sense inside stops neither the others nor the turn", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    const broken = { id: "100-0000000001", version: 0, record: { state: "requested", nodeTypes: null } };
    const output = reduce(
      fixture.state,
      [
        { type: "request", id: broken.id, after: broken as never },
        { type: "request", id: "100-0000000002", after: requestEntry("100-0000000002") },
      ],
      fixture.now,
    );
    expect(output.failures).toMatchObject([{ at: "request 100-0000000001" }]);
    expect(accepted(output.actions)).toEqual(["100-0000000002"]);
  });
});

describe("one decision, on a whole picture", () => {
  test("a request that is handled stays with its handler, whatever changes about pools meanwhile", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    const declined = { declined_by: ["launcher-gone/main"] };
    expect(accepted(fixture.request("100-0000000001", declined))).toEqual(["100-0000000001"]);
    const key = "another";
    expect(fixture.tell({ type: "component", key, after: component(key) })).toEqual([]);
    expect([...fixture.state.requests.waiting()].length).toBe(0);
  });

  test("nothing is declined before the whole tree has been seen", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.tell({ type: "complete", complete: false });
    expect(fixture.request("100-0000000001", { node_types: ["unknown"] })).toEqual([]);
    expect(fixture.tell({ type: "complete", complete: true })).toMatchObject([{ type: "decline" }]);
  });

  test("the preferred pool looks first: no request is noted as yielding to one that serves it at once", () => {
    const [first, second] = [pool({ provider: "a", priority: 1 }), pool({ provider: "b", priority: 2 })];
    const fixture = new SchedulerFixture(policy([second, first]));
    const event = { type: "request", id: "100-0000000001", after: requestEntry("100-0000000001") } as const;
    const { actions, verdicts } = reduce(fixture.state, [event], 0, 0);
    expect(actions).toMatchObject([{ type: "accept", pool: "a/main" }]);
    expect(verdicts).toEqual([]);
  });
});
