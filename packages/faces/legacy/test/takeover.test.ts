import type { TakeoverFacts } from "@nodeyard/operations";
import { describe, expect, test } from "vitest";
import { judgeTakeover, type TakeoverVerdict, type TakeoverWish } from "../src/index.ts";

const FACTS: TakeoverFacts = {
  provider: "p",
  pools: [],
  nodes: [],
  unreadable: [],
  waiting: [],
  taken: [],
  onlyServedHere: [],
  onlyHere: ["small"],
  otherPython: 0,
  backings: [],
  uploads: 0,
};
const WISH: TakeoverWish = {
  to: "nodeyard",
  driver: "openstack",
  exclusive: false,
  idle: false,
  differences: [],
};
const STATIC = { driver: "static", exclusive: true };
const pool = (kind: "python" | "nodeyard") => ({
  kind,
  host: `${kind}.example`,
  name: "main",
  labels: ["small"],
});
const [PYTHON, NODEYARD] = [pool("python"), pool("nodeyard")];
const node = (fields: Partial<TakeoverFacts["nodes"][number]>) => ({
  ...({ id: "0000000001", state: "ready", holder: null, suspended: false, given: false } as const),
  ...fields,
});
const judge = (facts: Partial<TakeoverFacts>, wish: Partial<TakeoverWish> = {}) =>
  judgeTakeover({ ...FACTS, ...facts }, { ...WISH, ...wish });
const codes = ({ findings }: TakeoverVerdict, level: string) =>
  findings.filter((one) => one.level === level).map(({ code }) => code);
const textOf = ({ findings }: TakeoverVerdict, code: string) =>
  findings.find((one) => one.code === code)?.text;

describe("the steps", () => {
  test("a cloud: begin with ours, both for a moment, then take it from Nodepool, done", () => {
    const before = judge({ pools: [PYTHON] });
    expect(before).toMatchObject({ done: false, safe: true });
    expect(textOf(before, "begin")).toMatch(
      /^start Nodeyard's launcher with p .* then take p out of the file/,
    );
    const both = judge({ pools: [PYTHON, NODEYARD] });
    expect(both).toMatchObject({ done: false, safe: true });
    expect(textOf(both, "leave")).toMatch(
      /limits are counted by each for itself.*take p out .* on python.example/,
    );
    expect(judge({ pools: [NODEYARD] })).toMatchObject({ done: true, safe: true });
  });

  test("hosts and slots: Nodepool's leaves first; the time in between costs what only it offers", () => {
    const before = judge({ pools: [PYTHON], otherPython: 2 }, STATIC);
    expect(textOf(before, "leave")).toMatch(
      /^take p out .* then start Nodeyard's launcher .* Not both at once/,
    );
    expect(before).toMatchObject({ safe: true });
    expect(codes(before, "note")).toEqual(["labels.gap"]);
    expect(textOf(before, "labels.gap")).toContain("fail requests for small");
    const between = judge({}, STATIC);
    expect(between).toMatchObject({ done: false, safe: true });
    expect(textOf(between, "begin")).toContain("nobody serves p");
  });

  test("hosts and slots: requests that others would fail are served first, or the others stop", () => {
    const waiting = ["200-0000000001"];
    const facts = { otherPython: 1, waiting, onlyServedHere: waiting };
    for (const { old, to } of [
      { old: PYTHON, to: "nodeyard" },
      { old: NODEYARD, to: "python" },
    ] as const) {
      const before = judge({ ...facts, pools: [old] }, { ...STATIC, to });
      expect(before).toMatchObject({ done: false, safe: false });
      expect(codes(before, "wait")).toEqual(["labels.gap"]);
      expect(textOf(before, "labels.gap")).toMatch(
        /fail request 200-0000000001, .*Wait until they are served; or stop all Python launchers/,
      );
    }
    // Nobody fails it: all Python launchers are stopped, or another provider has its labels.
    expect(judge({ ...facts, otherPython: 0, pools: [PYTHON] }, STATIC)).toMatchObject({ safe: true });
    expect(judge({ ...facts, onlyServedHere: [], pools: [PYTHON] }, STATIC)).toMatchObject({ safe: true });
    // While nobody serves it, to wait makes it worse.
    const between = judge(facts, STATIC);
    expect(between).toMatchObject({ safe: true });
    expect(codes(between, "note")).toContain("labels.gap");
    // A cloud is served by both for a moment, so that there is no such time.
    expect(textOf(judge({ ...facts, pools: [PYTHON] }), "labels.gap")).toBeUndefined();
  });

  test("back: the same the other way round", () => {
    const back = { to: "python" } as const;
    expect(textOf(judge({ pools: [NODEYARD] }, back), "begin")).toMatch(/^start Nodepool's launcher/);
    expect(judge({ pools: [PYTHON] }, back)).toMatchObject({ done: true });
    expect(judge({ pools: [NODEYARD, PYTHON] }, back)).toMatchObject({ done: false });
  });
});

describe("nodes", () => {
  test("one that cannot be read stops it, whoever serves", () => {
    const verdict = judge({ pools: [NODEYARD], unreadable: ["/nodepool/nodes/1"] });
    expect(verdict).toMatchObject({ done: false, safe: false });
    expect(codes(verdict, "stop")).toEqual(["node.unreadable"]);
  });

  test("used and free ones stay; machines that Nodeyard would not find have to go first", () => {
    const nodes = [
      node({ holder: { kind: "client", name: "" }, state: "in-use" }),
      node({ id: "0000000002" }),
    ];
    expect(codes(judge({ pools: [PYTHON], nodes }), "note")).toEqual(["node.used", "node.free"]);
    const azure = judge({ pools: [PYTHON], nodes }, { driver: "azure" });
    expect(azure).toMatchObject({ safe: false });
    expect(textOf(azure, "node.unknown")).toContain("max-servers: 0");
    expect(judge({ pools: [PYTHON], nodes: [] }, { driver: "azure" })).toMatchObject({ safe: true });
  });

  test("one that is being made: told before, waited for with --idle, and left to ours; nobody's is waited for at the end", () => {
    const nodes = [node({ state: "building", holder: { kind: "python", name: "python.example" } })];
    expect(codes(judge({ pools: [PYTHON], nodes }), "note")).toContain("node.moving");
    expect(judge({ pools: [PYTHON], nodes }, { idle: true })).toMatchObject({ safe: false });
    // Only a launcher can end it: that one may begin.
    expect(judge({ nodes })).toMatchObject({ safe: true });
    expect(judge({ pools: [NODEYARD], nodes })).toMatchObject({ done: false });
    const ours = [node({ state: "building", holder: { kind: "nodeyard", name: "nodeyard.example" } })];
    expect(judge({ pools: [NODEYARD], nodes: ours })).toMatchObject({ done: true });
  });

  test("a host in use under another name would be given out twice", () => {
    const verdict = judge(
      { pools: [PYTHON] },
      { ...STATIC, hosts: { missing: ["a"], strange: ["0000000001"] } },
    );
    expect(codes(verdict, "wait")).toEqual(["host.strange"]);
    expect(codes(verdict, "note")).toEqual(["host.missing"]);
  });

  test("back: leases and suspended nodes end first, and Nodepool has to have the driver", () => {
    const back = { to: "python" } as const;
    const nodes = [
      node({ holder: { kind: "lease", name: "l1" } }),
      node({ id: "0000000002", state: "hold", suspended: true }),
    ];
    expect(codes(judge({ pools: [NODEYARD], nodes }, back), "wait")).toEqual([
      "lease.held",
      "node.suspended",
    ]);
    expect(codes(judge({ pools: [PYTHON], nodes }), "wait")).toEqual([]);
    expect(codes(judge({ pools: [NODEYARD] }, { ...back, driver: "lxd" }), "stop")).toEqual(["driver.own"]);
  });
});

test("a request that Nodepool's process keeps locked, though it does not serve the provider any more, is told", () => {
  const taken = [{ id: "200-0000000001", holder: { kind: "python", name: "python.example" } as const }];
  expect(codes(judge({ pools: [PYTHON], taken }), "note")).toContain("request.taken");
  expect(judge({ pools: [PYTHON], taken }, { idle: true })).toMatchObject({ safe: false });
  const left = judge({ pools: [NODEYARD], taken });
  expect(left).toMatchObject({ done: false });
  expect(textOf(left, "request.taken")).toContain("restart its process");
  const ours = [{ id: "200-0000000001", holder: { kind: "nodeyard", name: "nodeyard.example" } as const }];
  expect(judge({ pools: [NODEYARD], taken: ours })).toMatchObject({ done: true });
});
