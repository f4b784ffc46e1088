import { expect, test } from "vitest";
import { reduce } from "../../src/scheduler/index.ts";
import { Usage } from "../../src/scheduler/usage.ts";
import { component, componentOf, Desk, policy, pool } from "./world.ts";

/** More than a turn has a budget for: when all of them are looked at again, another turn is asked for. */
const MANY = 600;

const id = (number: number) => `100-${String(number).padStart(10, "0")}`;

/** A full pool with many in line, and another launcher's pool with requests that only it can serve. */
function busyDesk(): Desk {
  const full = pool({ limits: { instances: 1 } });
  const lab = pool({ provider: "lab", labels: new Set(["board"]) });
  const desk = new Desk(policy([full, lab]), [...[full, lab].map(componentOf), foreign(false)]);
  desk.node("0000000001", { state: "in-use" }, ["user"]);
  for (let number = 0; number < MANY; number++) {
    desk.request(id(number));
    desk.request(id(MANY + number), {
      node_types: ["theirs"],
      declined_by: [full.id, lab.id],
    });
  }
  return desk;
}

function foreign(paused: boolean) {
  return component("foreign", { id: "foreign", providerName: "theirs", supportedLabels: ["theirs"], paused });
}

test("another launcher's pool that pauses or goes on has nobody looked at again who does not wait for it", () => {
  const desk = busyDesk();
  for (const paused of [true, false]) {
    const output = reduce(desk.state, [{ type: "component", key: "foreign", after: foreign(paused) }], 1);
    expect([output.more, output.actions]).toEqual([false, []]);
  }
});

test("a quota that is read anew has nobody looked at again who does not wait for it", () => {
  const desk = busyDesk();
  const { policy: before } = desk.state;
  const cloud = { ...before.providers.get("cloud")!, quota: { instances: 5 }, readAt: 1 };
  const after = { ...before, providers: new Map(before.providers).set("cloud", cloud) };
  for (const next of [after, { ...after }]) {
    const output = reduce(desk.state, [{ type: "policy", policy: next }], 1);
    expect([output.more, output.actions]).toEqual([false, []]);
  }
});

test("its end does: what everybody left has declined fails", () => {
  const desk = busyDesk();
  const actions = desk.tell({ type: "component", key: "foreign" });
  expect(actions.filter(({ type }) => type === "decline")).toHaveLength(MANY);
});

test("behind a blocked head a newcomer is looked at alone, and served when that delays nobody", () => {
  const needs = new Map([
    ["small", { instances: 1, cores: 4 }],
    ["large", { instances: 1 }],
  ]);
  const desk = new Desk(policy([pool({ limits: { cores: 4 }, needs })]));
  desk.node("0000000001", { state: "in-use", resources: { instances: 1, cores: 4 } }, ["user"]);
  for (let number = 0; number < MANY; number++) desk.request(id(number));
  const judged = new Map(desk.state.verdicts);
  expect(desk.request(id(MANY))).toEqual([]);
  expect(desk.state.verdicts).toEqual(judged);
  expect(desk.request(id(MANY + 1), { node_types: ["large"] })).toMatchObject([
    { type: "accept", request: id(MANY + 1) },
  ]);
});

test("a newcomer that goes before the blocked head takes its place", () => {
  const desk = busyDesk();
  desk.request("050-0000000009");
  expect(desk.state.verdicts.get("050-0000000009")?.code).toBe("capacity.pool");
  const served = desk.gone("node", "0000000001");
  expect(served).toContainEqual(expect.objectContaining({ type: "accept", request: "050-0000000009" }));
});

test("a holder that goes on under the same key frees nothing there; less, or no longer there, does", () => {
  const usage = new Usage();
  expect(usage.set("node", ["pool a", "launching a"], { instances: 1, cores: 4 })).toEqual([]);
  expect(usage.set("node", ["pool a"], { instances: 1, cores: 4 })).toEqual(["launching a"]);
  expect(usage.set("node", ["pool a"], { instances: 1, cores: 8 })).toEqual([]);
  expect(usage.set("node", ["pool a"], { instances: 1 })).toEqual(["pool a"]);
  expect(usage.of("pool a")).toEqual({ instances: 1 });
});
