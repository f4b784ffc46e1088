import { describe, expect, test } from "vitest";
import { Desk, policy, pool } from "./world.ts";

describe("nodes that are done with", () => {
  test.each(["used", "in-use", "building", "failed", "deleting", "deleted", "aborted"])(
    "%s and unlocked: deleted",
    (state) => {
      const desk = new Desk(policy([pool()]));
      expect(desk.node("0000000001", { state }, ["c"])).toEqual([]);
      expect(desk.node("0000000001", { state })).toEqual([
        { type: "delete", node: "0000000001", state, why: state },
      ]);
      expect(desk.tell({ type: "tick" })).toEqual([]);
      // Somebody touched it before the deletion has its lock.
      expect(desk.node("0000000001", { state, comment: "mine" })).toEqual([]);
    },
  );

  test("rule 5: nothing is deleted by half a view: what has it locked may not be in there", () => {
    const desk = new Desk(policy([pool()]));
    desk.tell({ type: "complete", complete: false });
    expect(desk.node("0000000001", { state: "in-use" })).toEqual([]);
    expect(desk.tell({ type: "complete", complete: true })).toMatchObject([{ type: "delete" }]);
  });

  test("nodes of providers that are not ours are left alone", () => {
    const desk = new Desk(policy([pool()]));
    expect(desk.node("0000000001", { state: "used", provider: "theirs" })).toEqual([]);
  });

  test("a failed deletion is tried again after its pause", () => {
    const desk = new Desk(policy([pool()]));
    desk.node("0000000001", { state: "used" });
    expect(desk.tell({ type: "deleted", node: "0000000001", retryMs: 1000 })).toEqual([]);
    expect(desk.wait(999)).toEqual([]);
    expect(desk.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  });

  test("init: debris only when it was never locked for 30 s", () => {
    const desk = new Desk(policy([pool()]));
    expect(desk.node("0000000001", { state: "init", allocated_to: "100-0000000001" })).toEqual([]);
    expect(desk.wait(29_999)).toEqual([]);
    expect(desk.wait(1)).toMatchObject([{ type: "delete", why: "never locked after it was made" }]);
  });

  test("rule 1: a static host whose user vanished is kept back for 60 s; a used one is not", () => {
    const lab = pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) });
    const desk = new Desk(policy([lab]));
    const inUse = { state: "in-use", provider: "lab" };
    desk.node("0000000001", inUse, ["c"]);
    expect(desk.node("0000000001", inUse)).toEqual([]);
    expect(desk.wait(59_999)).toEqual([]);
    expect(desk.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
    expect(desk.node("0000000002", { state: "used", provider: "lab" })).toMatchObject([{ type: "delete" }]);
  });

  test("rule 1: the 60 s are counted from its user's end, whatever was due of it before", () => {
    const lab = pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) });
    const desk = new Desk(policy([lab]));
    // Seen right after it was made; what happened in between was told too late.
    expect(desk.node("0000000001", { state: "init", provider: "lab" })).toEqual([]);
    expect(desk.wait(1_000)).toEqual([]);
    expect(desk.node("0000000001", { state: "in-use", provider: "lab" })).toEqual([]);
    expect(desk.wait(59_999)).toEqual([]);
    expect(desk.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  });

  test("rule 1: also while none of its pools serves, as before they are registered", () => {
    const lab = pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) });
    const desk = new Desk({ ...policy([lab]), pools: [] });
    expect(desk.node("0000000001", { state: "in-use", provider: "lab" })).toEqual([]);
    expect(desk.wait(59_999)).toEqual([]);
    expect(desk.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  });

  test("rule 1: a clock that is put right does not make the 60 s shorter", () => {
    const lab = pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) });
    const desk = new Desk(policy([lab]));
    desk.node("0000000001", { state: "in-use", provider: "lab" });
    desk.tell({ type: "ages", trusted: false });
    desk.jump(300_000);
    expect(desk.tell({ type: "ages", trusted: true })).toEqual([]);
    expect(desk.wait(59_999)).toEqual([]);
    expect(desk.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  });

  test("rule 1: nor does one that goes wrong by so little that it is believed", () => {
    const lab = pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) });
    const desk = new Desk(policy([lab]));
    desk.node("0000000001", { state: "in-use", provider: "lab" });
    expect(desk.wait(40_000)).toEqual([]);
    desk.jump(30_000);
    expect(desk.wait(19_999)).toEqual([]);
    expect(desk.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  });

  test("rule 1: the 60 s begin anew when its user comes back in between", () => {
    const lab = pool({ provider: "lab", launches: false, inventory: new Map([["small", 1]]) });
    const desk = new Desk(policy([lab]));
    const inUse = { state: "in-use", provider: "lab" };
    desk.node("0000000001", inUse);
    expect(desk.wait(40_000)).toEqual([]);
    desk.node("0000000001", inUse, ["c"]);
    expect(desk.wait(40_000)).toEqual([]);
    desk.node("0000000001", inUse);
    expect(desk.wait(59_999)).toEqual([]);
    expect(desk.wait(1)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  });

  test("hold: the shorter of its own and the global limit; 0 and absent are none", () => {
    const desk = new Desk(policy([pool()], { maxHoldAgeMs: 5_000 }));
    desk.node("0000000001", { state: "hold", hold_expiration: 1 });
    desk.node("0000000002", { state: "hold", hold_expiration: 180 });
    expect(desk.wait(1_000)).toMatchObject([{ node: "0000000001" }]);
    expect(desk.wait(4_000)).toMatchObject([{ node: "0000000002" }]);
    const forever = new Desk(policy([pool()]));
    forever.node("0000000001", { state: "hold", hold_expiration: "abc" });
    expect(forever.wait(1e9)).toEqual([]);
  });

  test("max-ready-age: an idle node goes, an allocated one does not", () => {
    const labels = new Map([["small", { name: "small", minReady: 0, maxReadyAgeMs: 2_000 }]]);
    const desk = new Desk(policy([pool()], { labels }));
    desk.request("100-0000000001", { state: "fulfilled" });
    desk.node("0000000001");
    desk.node("0000000002", { allocated_to: "100-0000000001" });
    expect(desk.wait(2_000)).toEqual([
      { type: "delete", node: "0000000001", state: "ready", why: "older than max-ready-age" },
    ]);
  });
});

describe("nodes of requests that are gone", () => {
  test("a ready node is freed when its request goes, and offered again", () => {
    const desk = new Desk(policy([pool()]));
    desk.request("100-0000000001", { state: "fulfilled" });
    desk.node("0000000001", { allocated_to: "100-0000000001" });
    expect(desk.gone("request", "100-0000000001")).toEqual([{ type: "deallocate", node: "0000000001" }]);
    desk.node("0000000001");
    desk.tell({ type: "deallocated", node: "0000000001" });
    expect(desk.request("100-0000000002")).toMatchObject([{ nodes: [{ reuse: "0000000001" }] }]);
  });

  test("one that was given to a request is offered to no other", () => {
    const desk = new Desk(policy([pool()]));
    desk.request("100-0000000001", { state: "fulfilled" });
    desk.node("0000000001", { allocated_to: "100-0000000001" });
    const [accepted] = desk.request("100-0000000002");
    expect(accepted).toMatchObject({ type: "accept" });
    expect(accepted).not.toMatchObject({ nodes: [{ reuse: "0000000001" }] });
  });

  test("nor does it stay with a request that was put back without it: it would be in its own way", () => {
    const request = "100-0000000001";
    const allocated = { allocated_to: request };
    const freed = { type: "deallocate", node: "0000000001" };
    for (const unlockedFirst of [false, true]) {
      const desk = new Desk(policy([pool({ limits: { instances: 1 } })]));
      desk.request(request, { state: "pending" });
      desk.node("0000000001", allocated, ["another launcher"]);
      const actions = [
        ...(unlockedFirst ? desk.node("0000000001", allocated) : desk.request(request)),
        ...(unlockedFirst ? desk.request(request) : desk.node("0000000001", allocated)),
      ];
      expect(actions.filter(({ type }) => type === "deallocate")).toEqual([freed]);
      expect(desk.node("0000000001")).toEqual([]);
      const [accepted] = desk.tell({ type: "deallocated", node: "0000000001" });
      expect(accepted).toMatchObject({ type: "accept", request, nodes: [{ reuse: "0000000001" }] });
      // What is being gathered for it here is not taken away from it.
      expect(desk.node("0000000001", allocated)).toEqual([]);
    }
  });

  test("a locked one is its user's: nothing happens before it is unlocked", () => {
    const desk = new Desk(policy([pool()]));
    desk.request("100-0000000001", { state: "fulfilled" });
    desk.node("0000000001", { allocated_to: "100-0000000001" }, ["executor"]);
    expect(desk.gone("request", "100-0000000001")).toEqual([]);
    expect(desk.node("0000000001", { state: "used", allocated_to: "100-0000000001" })).toMatchObject([
      { type: "delete" },
    ]);
  });
});

describe("min-ready", () => {
  const labels = new Map([
    ["small", { name: "small", minReady: 3, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
  ]);
  const minReady = { requestor: "NodePool:min-ready", reuse: false };

  test("asks for what lacks: idle nodes and open requests of anyone count", () => {
    const desk = new Desk(policy([pool()], { labels }));
    desk.tell({ type: "min-ready-requested", label: "small", retryMs: 1 });
    desk.node("0000000001");
    desk.tell({ type: "request", id: "900-0000000001", after: undefined });
    const asked = desk.wait(1);
    expect(asked).toEqual([{ type: "min-ready", label: "small", count: 2 }]);
    desk.request("900-0000000001", { ...minReady, state: "pending" });
    desk.request("900-0000000002", { ...minReady, state: "pending" });
    expect(desk.tell({ type: "min-ready-requested", label: "small" })).toEqual([]);
    desk.gone("request", "900-0000000002");
    expect(desk.tell({ type: "tick" })).toEqual([]);
    expect(desk.state.minReady.asking.has("small")).toBe(true);
  });

  test("at capacity a min-ready request is declined, not queued (check 12)", () => {
    const desk = new Desk(policy([pool({ limits: { instances: 1 } })]));
    desk.node("0000000001", { state: "in-use" }, ["c"]);
    expect(desk.request("900-0000000001", minReady)).toMatchObject([{ type: "decline" }]);
  });
});
