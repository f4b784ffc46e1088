import { expect, test } from "vitest";
import { OFFER_GRACE_MS, reduce } from "../src/index.ts";
import { Usage } from "../src/usage.ts";
import { component, componentOf, policy, pool, SchedulerFixture } from "./world.ts";

/** More than a turn has a budget for: when all of them are looked at again, another turn is asked for. */
const MANY = 600;

const id = (number: number) => `100-${String(number).padStart(10, "0")}`;

/** A full pool with many in line, and another launcher's pool with requests that only it can serve. */
function busyFixture(): SchedulerFixture {
  const full = pool({ limits: { instances: 1 } });
  const lab = pool({ provider: "lab", labels: new Set(["board"]) });
  const fixture = new SchedulerFixture(policy([full, lab]), [
    ...[full, lab].map(componentOf),
    foreign(false),
  ]);
  fixture.node("0000000001", { state: "in-use" }, ["user"]);
  for (let number = 0; number < MANY; number++) {
    fixture.request(id(number));
    fixture.request(id(MANY + number), {
      node_types: ["theirs"],
      declined_by: [full.id, lab.id],
    });
  }
  return fixture;
}

function foreign(paused: boolean) {
  return component("foreign", { id: "foreign", providerName: "theirs", supportedLabels: ["theirs"], paused });
}

test("a pause of another launcher's pool wakes only the requests that wait for it", () => {
  const fixture = busyFixture();
  for (const paused of [true, false]) {
    const output = reduce(fixture.state, [{ type: "component", key: "foreign", after: foreign(paused) }], 1);
    expect([output.more, output.actions]).toEqual([false, []]);
  }
});

test("a quota that is read again wakes only the requests that wait for it", () => {
  const fixture = busyFixture();
  const { policy: before } = fixture.state;
  const cloud = { ...before.providers.get("cloud")!, quota: { instances: 5 }, readAt: 1 };
  const after = { ...before, providers: new Map(before.providers).set("cloud", cloud) };
  for (const next of [after, { ...after }]) {
    const output = reduce(fixture.state, [{ type: "policy", policy: next }], 1);
    expect([output.more, output.actions]).toEqual([false, []]);
  }
});

test("facts of one pool that are read anew have no node looked at, and no request that it cannot serve", () => {
  const fixture = busyFixture();
  for (let number = 2; number < MANY; number++)
    fixture.node(String(number).padStart(10, "0"), { state: "in-use" }, ["user"]);
  const { policy: before } = fixture.state;
  const pools = before.pools.map((each) =>
    each.provider === "lab" ? { ...each, unavailable: new Map([["board", "its image is gone"]]) } : each,
  );
  const output = reduce(fixture.state, [{ type: "policy", policy: { ...before, pools } }], 1);
  expect(output.more).toBe(false);
  // A change that concerns them all does.
  const held = reduce(fixture.state, [{ type: "policy", policy: { ...before, pools, maxHoldAgeMs: 5 } }], 1);
  expect(held.more).toBe(true);
});

test("its end does: a request that all remaining pools declined fails", () => {
  const fixture = busyFixture();
  fixture.tell({ type: "component", key: "foreign" });
  const actions = fixture.wait(OFFER_GRACE_MS);
  expect(actions.filter(({ type }) => type === "decline")).toHaveLength(MANY);
});

test("behind a blocked head only the newcomer is planned, and served when that delays no other", () => {
  const needs = new Map([
    ["small", { instances: 1, cores: 4 }],
    ["large", { instances: 1 }],
  ]);
  const fixture = new SchedulerFixture(policy([pool({ limits: { cores: 4 }, needs })]));
  fixture.node("0000000001", { state: "in-use", resources: { instances: 1, cores: 4 } }, ["user"]);
  for (let number = 0; number < MANY; number++) fixture.request(id(number));
  const judged = fixture.verdicts();
  expect(fixture.request(id(MANY))).toEqual([]);
  expect(fixture.verdicts()).toEqual(judged);
  expect(fixture.request(id(MANY + 1), { node_types: ["large"] })).toMatchObject([
    { type: "accept", request: id(MANY + 1) },
  ]);
});

test("a newcomer that goes before the blocked head takes its place", () => {
  const fixture = busyFixture();
  fixture.request("050-0000000009");
  expect(fixture.state.requests.of("050-0000000009")?.verdict?.code).toBe("capacity.pool");
  const served = fixture.gone("node", "0000000001");
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
