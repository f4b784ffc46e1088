import { offeringKey } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { explain, type Failures, newTally } from "../src/index.ts";
import { node, policy, pool, request, SchedulerFixture } from "./world.ts";

const small = offeringKey({ provider: "cloud", az: null, type: "small" });

function failing({
  until = 60_000,
  hopeless = false,
  prober = undefined as string | undefined,
} = {}): Failures {
  const last = { kind: "timeout", error: "no answer" };
  return {
    tally: { ...newTally(), row: 5, since: 0, last },
    pause: { why: "failures", opens: hopeless ? 4 : 1, until },
    prober,
  };
}

const asks = (fixture: SchedulerFixture, ...ids: string[]) =>
  fixture.tell(...ids.map((id) => ({ type: "request", id, after: request(id) }) as const));
const accepted = (actions: ReturnType<SchedulerFixture["tell"]>) =>
  actions.flatMap((action) => (action.type === "accept" ? [`${action.request} ${action.pool}`] : []));

describe("an offering that fails", () => {
  test("is waited for, with the time of the next try and what is known", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.tell({ type: "failures", key: small, after: failing() });
    expect(accepted(asks(fixture, "100-1"))).toEqual([]);
    expect(explain(fixture.state, "100-1")).toMatchObject({
      code: "offering.failing",
      nextTry: 60_000,
      facts: { label: "small", kind: "timeout", error: "no answer", failures: 5 },
    });
    fixture.now = 59_999;
    expect(accepted(fixture.tell({ type: "tick" }))).toEqual([]);
    fixture.now = 60_000;
    expect(accepted(fixture.tell({ type: "tick" }))).toEqual(["100-1 cloud/main"]);
  });

  test("at its time one request tries, the first; the others go on when it works, in one turn", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.tell({ type: "failures", key: small, after: failing() });
    asks(fixture, "100-1", "100-2", "100-3");
    fixture.now = 60_000;
    expect(accepted(fixture.tell({ type: "tick" }))).toEqual(["100-1 cloud/main"]);
    fixture.now = 70_000;
    expect(accepted(fixture.tell({ type: "tick" }))).toEqual([]);
    const codes = ["100-2", "100-3"].map((id) => explain(fixture.state, id)?.code);
    expect(codes).toContain("offering.trying");
    expect(accepted(fixture.tell({ type: "failures", key: small }))).toEqual([
      "100-2 cloud/main",
      "100-3 cloud/main",
    ]);
  });

  test("while a request of another launcher tries the offering, none of this launcher does", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.tell({ type: "failures", key: small, after: failing({ until: 0, prober: "100-9" }) });
    expect(accepted(asks(fixture, "100-1"))).toEqual([]);
    expect(explain(fixture.state, "100-1")).toMatchObject({
      code: "offering.trying",
      facts: { request: "100-9" },
    });
    expect(accepted(fixture.tell({ type: "failures", key: small, after: failing({ until: 0 }) }))).toEqual([
      "100-1 cloud/main",
    ]);
  });

  test("without room is tried as soon as a machine of it is deleted; one that fails otherwise, at its time", () => {
    for (const kind of ["capacity", "timeout"]) {
      const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 3 } })]));
      const [mine, large] = ["0000000001", "0000000002"];
      const used = { state: "used", external_id: "m", interface_ip: "192.0.2.1" };
      const never = "0000000003";
      const refused = node(never, { ...used, interface_ip: null }, ["us"]);
      fixture.tell({ type: "node", id: never, after: refused });
      fixture.tell({ type: "node", id: mine, after: node(mine, used, ["us"]) });
      fixture.tell({ type: "node", id: large, after: node(large, { ...used, type: ["large"] }, ["us"]) });
      const { tally, ...closed } = failing();
      const last = { kind, error: "no room" };
      fixture.tell({ type: "failures", key: small, after: { ...closed, tally: { ...tally, last } } });
      asks(fixture, "100-1", "100-2");
      // One that never came up, which the cloud may have refused.
      expect(accepted(fixture.tell({ type: "node", id: never }))).toEqual([]);
      // Of another type: that says nothing of this one.
      expect(accepted(fixture.tell({ type: "node", id: large }))).toEqual([]);
      const after = fixture.tell({ type: "node", id: mine });
      expect(accepted(after)).toEqual(kind === "capacity" ? ["100-1 cloud/main"] : []);
    }
  });

  test("an idle node serves it nevertheless; so does another provider, also one of lower priority", () => {
    const fixture = new SchedulerFixture(policy([pool(), pool({ provider: "other", priority: 200 })]));
    fixture.tell({ type: "failures", key: small, after: failing() });
    expect(accepted(asks(fixture, "100-1"))).toEqual(["100-1 other/main"]);
    const alone = new SchedulerFixture(policy([pool()]));
    alone.tell({ type: "failures", key: small, after: failing() });
    asks(alone, "100-1");
    expect(accepted(alone.tell({ type: "node", id: "0000000001", after: node("0000000001") }))).toEqual([
      "100-1 cloud/main",
    ]);
  });

  test("that does not come back is declined, with the reason, and so is stock of it at once", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.tell({ type: "failures", key: small, after: failing({ hopeless: true }) });
    const [decline] = asks(fixture, "100-1");
    expect(decline).toMatchObject({ type: "decline", request: "100-1" });
    expect((decline as { reason: string }).reason).toContain("no answer");
    const stock = new SchedulerFixture(policy([pool()]));
    stock.tell({ type: "failures", key: small, after: failing() });
    const after = request("900-1", { requestor: "NodePool:min-ready" });
    expect(stock.tell({ type: "request", id: "900-1", after })).toMatchObject([{ type: "decline" }]);
  });

  test("that does not come back any more: all who wait are declined, not one after each try", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.tell({ type: "failures", key: small, after: failing() });
    expect(asks(fixture, "100-1", "100-2", "100-3")).toEqual([]);
    fixture.now = 60_000;
    expect(accepted(fixture.tell({ type: "tick" }))).toEqual(["100-1 cloud/main"]);
    const hopeless = failing({ until: 120_000, hopeless: true });
    // Until its handler has ended, it may still be tried.
    expect(fixture.tell({ type: "failures", key: small, after: hopeless })).toEqual([]);
    const declined = fixture
      .tell({ type: "handled", request: "100-1" })
      .flatMap((action) => (action.type === "decline" ? [action.request] : []));
    expect(declined.sort()).toEqual(["100-1", "100-2", "100-3"]);
  });
});
