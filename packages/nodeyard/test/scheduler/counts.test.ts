import { describe, expect, test } from "vitest";
import { Desk, policy, pool } from "./world.ts";

const accepted = (actions: readonly { type: string }[]) =>
  actions.flatMap((action) =>
    action.type === "accept" ? [(action as unknown as { request: string }).request] : [],
  );
const id = (number: number) => `100-${String(number).padStart(10, "0")}`;
const nodeId = (number: number) => String(number).padStart(10, "0");

describe("what counts against limits (rule 3)", () => {
  test("a node that is being deleted counts until its record is gone", () => {
    const desk = new Desk(policy([pool({ limits: { instances: 1 } })]));
    desk.node(nodeId(1), { state: "deleting" }, ["c"]);
    expect(desk.request(id(1))).not.toContainEqual(expect.objectContaining({ type: "accept" }));
    expect(desk.code(id(1))).toBe("capacity.pool");
    expect(accepted(desk.gone("node", nodeId(1)))).toEqual([id(1)]);
  });

  test("a node that somebody launches counts for max-concurrency until it is ready", () => {
    const given = policy([pool()]);
    const limited = { ...given.providers.get("cloud")!, maxConcurrency: 1 };
    const desk = new Desk({ ...given, providers: new Map([["cloud", limited]]) });
    desk.node(nodeId(1), { state: "building", allocated_to: "200-0000000009" }, ["c"]);
    expect(accepted(desk.request(id(1)))).toEqual([]);
    expect(desk.code(id(1))).toBe("capacity.concurrency");
    const ready = { state: "ready", allocated_to: "200-0000000009" };
    expect(accepted(desk.node(nodeId(1), ready, ["c"]))).toEqual([id(1)]);
  });

  test("an idle node keeps the name of its last tenant, and counts for nobody", () => {
    const limits = new Map([["t", { instances: 1 }]]);
    const desk = new Desk(policy([pool()], { tenantLimits: limits }));
    desk.node(nodeId(1), { type: ["large"], tenant_name: "t", allocated_to: null });
    expect(accepted(desk.request(id(1), { tenant_name: "t" }))).toEqual([id(1)]);
  });

  test("an idle node that a blocked head wants is not given to a newcomer", () => {
    const desk = new Desk(policy([pool({ limits: { instances: 2 } })]));
    desk.node(nodeId(1), { state: "in-use" }, ["c"]);
    desk.node(nodeId(2));
    expect(accepted(desk.request(id(1), { node_types: ["small", "small"] }))).toEqual([]);
    expect(desk.code(id(1))).toBe("capacity.pool");
    expect(accepted(desk.request(id(2)))).toEqual([]);
    expect(accepted(desk.gone("node", nodeId(1)))).toEqual([id(1)]);
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
      const desk = new Desk(before);
      const unreadable = { type: "unreadable", kind: "node", id: nodeId(1) } as const;
      desk.tell({ ...unreadable, known: { provider: "cloud", pool: "main" } });
      desk.tell({ type: "policy", policy: after });
      expect(accepted(desk.request(id(1)))).toEqual([]);
      expect(desk.code(id(1))).toBe("capacity.pool");
      expect(accepted(desk.tell(unreadable))).toEqual([id(1)]);
    }
  });
});
