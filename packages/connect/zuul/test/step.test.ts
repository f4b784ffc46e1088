import { describe, expect, test } from "vitest";
import { type Facts, nextStep } from "../src/step.ts";

const NOW = 1_796_060_000;
const UUID = "608513a263bc423492732989f808d738";
const NODE: Facts["node"] = {
  uuid: UUID,
  state: "requested",
  state_time: NOW - 60,
  request_time: NOW - 120,
  label: "small",
  connection_name: "nodeyard",
  interface_ip: null,
  connection_port: 22,
  connection_type: null,
  username: null,
  host_keys: [],
  host_id: null,
  cloud: null,
};
const ASSIGNMENT: Facts["assignment"] = { request_id: "r", min_request_version: 2 };

function request(version: number, nodes: readonly string[]): Facts["request"] {
  const provider_node_data = nodes.map((uuid) => ({ uuid }));
  return {
    version,
    value: { uuid: "r", priority: 200, buildset_uuid: "b", job_name: "unit", provider_node_data },
  };
}

function step(state: Facts["node"]["state"], facts: Partial<Facts> = {}, node: Partial<Facts["node"]> = {}) {
  return nextStep({
    node: { ...NODE, ...node, state },
    assignment: ASSIGNMENT,
    request: request(2, [UUID]),
    lifecycle: undefined,
    lease: undefined,
    now: NOW,
    ...facts,
  });
}
const lease = (state: "waiting" | "granted" | "failed" | "released") => ({ lease: { state } });
const GONE = { request: undefined };
const FREE = { assignment: undefined, request: undefined };
const REMOVE = { do: "remove", record: true };
const RETIRE = { do: "retire" };
const WAIT = { do: "wait", until: undefined };

describe("what comes next for a node of Zuul", () => {
  test("it is begun, leased, and made ready; its state says what was done", () => {
    expect(step("requested")).toEqual({ do: "begin" });
    expect(step("building")).toEqual({ do: "lease" });
    expect(step("building", lease("waiting"))).toEqual(WAIT);
    expect(step("building", lease("granted"))).toEqual({ do: "ready" });
    expect(step("ready", lease("granted"))).toEqual(WAIT);
  });

  test("no pool can serve it: Zuul tries another provider; the lease ended: Zuul tries again", () => {
    expect(step("building", lease("failed"))).toEqual({ do: "fail", state: "failed" });
    expect(step("building", lease("released"))).toEqual({ do: "fail", state: "tempfailed" });
    expect(step("requested", {}, { subnodes: ["a"] })).toEqual({ do: "fail", state: "failed" });
  });

  test("a failed node gives its lease back at once; its record stays until the request has another one", () => {
    expect(step("failed", lease("failed"))).toEqual({ do: "remove", record: false });
    expect(step("failed")).toEqual(WAIT);
    expect(step("failed", { request: request(3, ["other"]) })).toEqual(REMOVE);
    expect(step("outdated", { ...FREE, ...lease("granted") })).toEqual(REMOVE);
    expect(step("tempfailed", FREE)).toEqual(REMOVE);
  });

  test("what nobody needs goes: used, abandoned, or not of its request", () => {
    expect(step("used", { ...GONE, ...lease("granted") })).toEqual(REMOVE);
    for (const state of ["requested", "building", "ready", "in-use", "snapshot"] as const)
      expect(step(state, { ...GONE, ...lease("granted") })).toEqual(REMOVE);
    expect(step("building", { request: request(2, []), ...lease("waiting") })).toEqual(REMOVE);
    // The launcher has not written the node into the request yet.
    expect(step("building", { request: request(1, []), ...lease("waiting") })).toEqual(WAIT);
  });

  test("a node that lost its lease goes, before somebody finds it", () => {
    for (const state of ["ready", "in-use", "hold"] as const) {
      expect(step(state)).toEqual(REMOVE);
      expect(step(state, lease("released"))).toEqual(REMOVE);
    }
  });

  test("without a request it is kept as long as its label says", () => {
    const kept = { ...FREE, ...lease("granted") };
    expect(step("ready", kept)).toEqual(WAIT);
    expect(step("ready", kept, { max_ready_age: 100 })).toEqual({ do: "wait", until: NOW + 40 });
    expect(step("ready", kept, { max_ready_age: 60 })).toEqual(RETIRE);
    expect(step("ready", kept, { max_age: 120 })).toEqual(RETIRE);
    expect(step("ready", lease("granted"), { max_age: 1 })).toEqual(WAIT);
  });

  test("a hold ends at its time, and keeps the assignment to a request that is gone", () => {
    const held = { ...GONE, ...lease("granted") };
    expect(step("hold", held)).toEqual(WAIT);
    expect(step("hold", held, { hold_expiration: 100 })).toEqual({ do: "wait", until: NOW + 40 });
    expect(step("hold", held, { hold_expiration: 60 })).toEqual(RETIRE);
  });

  test("what people ask for is done when no request needs the node", () => {
    const lifecycle = { next_state: "hold", next_comment: "ann" };
    const move = { do: "move", state: "hold", comment: "ann" };
    expect(step("ready", { ...FREE, ...lease("granted"), lifecycle })).toEqual(move);
    expect(step("in-use", { ...GONE, ...lease("granted"), lifecycle })).toEqual(move);
    expect(step("ready", { ...lease("granted"), lifecycle })).toEqual(WAIT);
  });
});
