import { describe, expect, test } from "vitest";
import { policy, pool, SchedulerFixture } from "./world.ts";

const accepted = (actions: readonly { type: string }[]) =>
  actions.flatMap((action) =>
    action.type === "accept" ? [(action as unknown as { request: string }).request] : [],
  );
const id = (number: number) => `100-${String(number).padStart(10, "0")}`;
const nodeId = (number: number) => String(number).padStart(10, "0");

describe("what counts against limits (rule 3)", () => {
  test("a node that is being deleted counts until its record is gone", () => {
    const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 1 } })]));
    fixture.node(nodeId(1), { state: "deleting" }, ["c"]);
    expect(fixture.request(id(1))).not.toContainEqual(expect.objectContaining({ type: "accept" }));
    expect(fixture.code(id(1))).toBe("capacity.pool");
    expect(accepted(fixture.gone("node", nodeId(1)))).toEqual([id(1)]);
  });

  test("a node that any launcher launches counts for max-concurrency until it is ready", () => {
    const given = policy([pool()]);
    const limited = { ...given.providers.get("cloud")!, maxConcurrency: 1 };
    const fixture = new SchedulerFixture({ ...given, providers: new Map([["cloud", limited]]) });
    fixture.node(nodeId(1), { state: "building", allocated_to: "200-0000000009" }, ["c"]);
    expect(accepted(fixture.request(id(1)))).toEqual([]);
    expect(fixture.code(id(1))).toBe("capacity.concurrency");
    const ready = { state: "ready", allocated_to: "200-0000000009" };
    expect(accepted(fixture.node(nodeId(1), ready, ["c"]))).toEqual([id(1)]);
  });

  test("an idle node keeps the name of its last tenant, and counts for no tenant", () => {
    const limits = new Map([["t", { instances: 1 }]]);
    const fixture = new SchedulerFixture(policy([pool()], { tenantLimits: limits }));
    fixture.node(nodeId(1), { type: ["large"], tenant_name: "t", allocated_to: null });
    expect(accepted(fixture.request(id(1), { tenant_name: "t" }))).toEqual([id(1)]);
  });

  test("an idle node that a blocked head wants is not given to a newcomer", () => {
    const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 2 } })]));
    fixture.node(nodeId(1), { state: "in-use" }, ["c"]);
    fixture.node(nodeId(2));
    expect(accepted(fixture.request(id(1), { node_types: ["small", "small"] }))).toEqual([]);
    expect(fixture.code(id(1))).toBe("capacity.pool");
    expect(accepted(fixture.request(id(2)))).toEqual([]);
    expect(accepted(fixture.gone("node", nodeId(1)))).toEqual([id(1)]);
  });

  test("a node that cannot be read takes what the largest of its pool takes, also of a pool that is known later", () => {
    const needs = new Map([
      ["small", { instances: 1, cores: 2 }],
      ["large", { instances: 1, cores: 8 }],
    ]);
    const limited = policy([pool({ limits: { cores: 9 }, needs })]);
    for (const [before, after] of [
      [limited, limited],
      [policy([]), limited],
    ] as const) {
      const fixture = new SchedulerFixture(before);
      const unreadable = { type: "unreadable", kind: "node", id: nodeId(1) } as const;
      fixture.tell({ ...unreadable, known: { provider: "cloud", pool: "main" } });
      fixture.tell({ type: "policy", policy: after });
      expect(accepted(fixture.request(id(1)))).toEqual([]);
      expect(fixture.code(id(1))).toBe("capacity.pool");
      expect(accepted(fixture.tell(unreadable))).toEqual([id(1)]);
    }
  });
});
