import { describe, expect, test } from "vitest";
import { policy, pool, SchedulerFixture } from "./world.ts";

describe("nodes that are done with", () => {
  test.each(["used", "in-use", "building", "failed", "deleting", "deleted", "aborted"])(
    "%s and unlocked: deleted",
    (state) => {
      const fixture = new SchedulerFixture(policy([pool()]));
      expect(fixture.node("0000000001", { state }, ["c"])).toEqual([]);
      expect(fixture.node("0000000001", { state })).toEqual([
        { type: "delete", node: "0000000001", version: 0, why: state },
      ]);
      expect(fixture.tell({ type: "tick" })).toEqual([]);
      // Somebody touched it before the deletion has its lock.
      expect(fixture.node("0000000001", { state, comment: "mine" })).toEqual([]);
    },
  );

  test("rule 5: nothing is deleted by half a view: what has it locked may not be in there", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.tell({ type: "complete", complete: false });
    expect(fixture.node("0000000001", { state: "in-use" })).toEqual([]);
    expect(fixture.tell({ type: "complete", complete: true })).toMatchObject([{ type: "delete" }]);
  });

  test("a failed deletion is tried again after its pause", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.node("0000000001", { state: "used" });
    expect(fixture.tell({ type: "deleted", node: "0000000001", retryMs: 1000 })).toEqual([]);
    expect(fixture.wait(999)).toEqual([]);
    expect(fixture.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  });

  test("init: debris only when it was never locked for 30 s", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    expect(fixture.node("0000000001", { state: "init", allocated_to: "100-0000000001" })).toEqual([]);
    expect(fixture.wait(29_999)).toEqual([]);
    expect(fixture.wait(1)).toMatchObject([{ type: "delete", why: "never locked after it was made" }]);
  });

  test("rule 1: a static host whose user vanished is kept back for 60 s; a used one is not", () => {
    const lab = pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) });
    const fixture = new SchedulerFixture(policy([lab]));
    const inUse = { state: "in-use", provider: "lab" };
    fixture.node("0000000001", inUse, ["c"]);
    expect(fixture.node("0000000001", inUse)).toEqual([]);
    expect(fixture.wait(59_999)).toEqual([]);
    expect(fixture.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
    expect(fixture.node("0000000002", { state: "used", provider: "lab" })).toMatchObject([
      { type: "delete" },
    ]);
  });

  test("rule 1: the 60 s are counted from its user's end, whatever was due of it before", () => {
    const lab = pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) });
    const fixture = new SchedulerFixture(policy([lab]));
    // Seen right after it was made; what happened in between was told too late.
    expect(fixture.node("0000000001", { state: "init", provider: "lab" })).toEqual([]);
    expect(fixture.wait(1_000)).toEqual([]);
    expect(fixture.node("0000000001", { state: "in-use", provider: "lab" })).toEqual([]);
    expect(fixture.wait(59_999)).toEqual([]);
    expect(fixture.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  });

  test("rule 1: also while none of its pools serves, as before they are registered", () => {
    const lab = pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) });
    const fixture = new SchedulerFixture({ ...policy([lab]), pools: [] });
    expect(fixture.node("0000000001", { state: "in-use", provider: "lab" })).toEqual([]);
    expect(fixture.wait(59_999)).toEqual([]);
    expect(fixture.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  });

  test("rule 1: a clock that is put right does not make the 60 s shorter", () => {
    const lab = pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) });
    const fixture = new SchedulerFixture(policy([lab]));
    fixture.node("0000000001", { state: "in-use", provider: "lab" });
    fixture.tell({ type: "ages", trusted: false });
    fixture.jump(300_000);
    expect(fixture.tell({ type: "ages", trusted: true })).toEqual([]);
    expect(fixture.wait(59_999)).toEqual([]);
    expect(fixture.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  });

  test("rule 1: nor does a jump that is too small to lose trust", () => {
    const lab = pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) });
    const fixture = new SchedulerFixture(policy([lab]));
    fixture.node("0000000001", { state: "in-use", provider: "lab" });
    expect(fixture.wait(40_000)).toEqual([]);
    fixture.jump(30_000);
    expect(fixture.wait(19_999)).toEqual([]);
    expect(fixture.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  });

  test("rule 1: the 60 s begin anew when its user comes back in between", () => {
    const lab = pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) });
    const fixture = new SchedulerFixture(policy([lab]));
    const inUse = { state: "in-use", provider: "lab" };
    fixture.node("0000000001", inUse);
    expect(fixture.wait(40_000)).toEqual([]);
    fixture.node("0000000001", inUse, ["c"]);
    expect(fixture.wait(40_000)).toEqual([]);
    fixture.node("0000000001", inUse);
    expect(fixture.wait(59_999)).toEqual([]);
    expect(fixture.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  });

  test("hold: the shorter of its own and the global limit; 0 and absent are none", () => {
    const fixture = new SchedulerFixture(policy([pool()], { maxHoldAgeMs: 5_000 }));
    fixture.node("0000000001", { state: "hold", hold_expiration: 1 });
    fixture.node("0000000002", { state: "hold", hold_expiration: 180 });
    expect(fixture.wait(1_000)).toMatchObject([{ node: "0000000001" }]);
    expect(fixture.wait(4_000)).toMatchObject([{ node: "0000000002" }]);
    const forever = new SchedulerFixture(policy([pool()]));
    forever.node("0000000001", { state: "hold", hold_expiration: "abc" });
    expect(forever.wait(1e9)).toEqual([]);
  });

  test("max-ready-age: an idle node goes, an allocated one does not", () => {
    const labels = new Map([["small", { name: "small", minReady: 0, maxReadyAgeMs: 2_000 }]]);
    const fixture = new SchedulerFixture(policy([pool()], { labels }));
    fixture.request("100-0000000001", { state: "fulfilled" });
    fixture.node("0000000001");
    fixture.node("0000000002", { allocated_to: "100-0000000001" });
    expect(fixture.wait(2_000)).toEqual([
      { type: "delete", node: "0000000001", version: 0, why: "older than max-ready-age" },
    ]);
  });
});

describe("nodes of requests that are gone", () => {
  test("a ready node is freed when its request goes, and offered again", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.request("100-0000000001", { state: "fulfilled" });
    fixture.node("0000000001", { allocated_to: "100-0000000001" });
    expect(fixture.gone("request", "100-0000000001")).toEqual([{ type: "deallocate", node: "0000000001" }]);
    fixture.node("0000000001");
    fixture.tell({ type: "deallocated", node: "0000000001" });
    expect(fixture.request("100-0000000002")).toMatchObject([{ nodes: [{ reuse: "0000000001" }] }]);
  });

  test("one that was given to a request is offered to no other", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.request("100-0000000001", { state: "fulfilled" });
    fixture.node("0000000001", { allocated_to: "100-0000000001" });
    const [accepted] = fixture.request("100-0000000002");
    expect(accepted).toMatchObject({ type: "accept" });
    expect(accepted).not.toMatchObject({ nodes: [{ reuse: "0000000001" }] });
  });

  test("nor does it stay with a request that was put back without it: it would be in its own way", () => {
    const request = "100-0000000001";
    const allocated = { allocated_to: request };
    const freed = { type: "deallocate", node: "0000000001" };
    for (const unlockedFirst of [false, true]) {
      const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 1 } })]));
      fixture.request(request, { state: "pending" });
      fixture.node("0000000001", allocated, ["another launcher"]);
      const actions = [
        ...(unlockedFirst ? fixture.node("0000000001", allocated) : fixture.request(request)),
        ...(unlockedFirst ? fixture.request(request) : fixture.node("0000000001", allocated)),
      ];
      expect(actions.filter(({ type }) => type === "deallocate")).toEqual([freed]);
      expect(fixture.node("0000000001")).toEqual([]);
      const [accepted] = fixture.tell({ type: "deallocated", node: "0000000001" });
      expect(accepted).toMatchObject({ type: "accept", request, nodes: [{ reuse: "0000000001" }] });
      // What is being gathered for it here is not taken away from it.
      expect(fixture.node("0000000001", allocated)).toEqual([]);
    }
  });
});

describe("min-ready", () => {
  const labels = new Map([
    ["small", { name: "small", minReady: 3, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
  ]);
  const minReady = { requestor: "NodePool:min-ready", reuse: false };

  test("asks for what lacks: idle nodes and open requests of anyone count", () => {
    const fixture = new SchedulerFixture(policy([pool()], { labels }));
    fixture.tell({ type: "min-ready-requested", label: "small", retryMs: 1 });
    fixture.node("0000000001");
    fixture.tell({ type: "request", id: "900-0000000001", after: undefined });
    const asked = fixture.wait(1);
    expect(asked).toEqual([{ type: "min-ready", label: "small", count: 2 }]);
    fixture.request("900-0000000001", { ...minReady, state: "pending" });
    fixture.request("900-0000000002", { ...minReady, state: "pending" });
    expect(fixture.tell({ type: "min-ready-requested", label: "small" })).toEqual([]);
    fixture.gone("request", "900-0000000002");
    expect(fixture.tell({ type: "tick" })).toEqual([]);
    expect(fixture.state.minReady.asking.has("small")).toBe(true);
  });

  test("at capacity a min-ready request is declined, not queued (check 12)", () => {
    const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 1 } })]));
    fixture.node("0000000001", { state: "in-use" }, ["c"]);
    expect(fixture.request("900-0000000001", minReady)).toMatchObject([{ type: "decline" }]);
  });
});
