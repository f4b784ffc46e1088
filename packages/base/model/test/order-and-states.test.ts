import { describe, expect, it } from "vitest";
import {
  changeComponent,
  compareRequests,
  decodeComponent,
  encodeComponent,
  launcherPoolId,
  mayGo,
  newComponent,
  nodeStates,
  nodeTransitions,
  parseRequestId,
  requestStates,
  requestTransitions,
} from "../src/index.ts";

describe("request ids", () => {
  it("parse with exactly one dash and a decimal sequence", () => {
    expect(parseRequestId("100-0000000005")).toEqual({ priority: "100", sequence: "0000000005" });
    for (const bad of ["1000000000005", "100-5-6", "-5", "100-", "100-x", "100--2147483648", ""]) {
      expect(parseRequestId(bad), bad).toBeUndefined();
    }
  });

  it("sort by prefix as text, relative priority, sequence as text; the unreadable last", () => {
    const all = [
      { id: "odd", relativePriority: 0 },
      { id: "200-0000000001", relativePriority: 0 },
      { id: "100-0000000003", relativePriority: 1 },
      { id: "100-0000000004", relativePriority: 0 },
      { id: "099-0000000009", relativePriority: 100 },
      { id: "100-0000000002", relativePriority: 1 },
    ];
    expect(all.sort(compareRequests).map(({ id }) => id)).toEqual([
      "099-0000000009",
      "100-0000000004",
      "100-0000000002",
      "100-0000000003",
      "200-0000000001",
      "odd",
    ]);
  });
});

describe("transitions", () => {
  it("allow what the table says and staying, nothing else", () => {
    expect(mayGo("node", "init", "building")).toBe(true);
    expect(mayGo("node", "ready", "ready")).toBe(true);
    expect(mayGo("node", "deleted", "ready")).toBe(false);
    expect(mayGo("node", "building", "in-use")).toBe(false);
    expect(mayGo("request", "pending", "fulfilled")).toBe(true);
    expect(mayGo("request", "fulfilled", "pending")).toBe(false);
    expect(mayGo("request", "requested", "fulfilled")).toBe(false);
  });

  it("name known states only, each pair once, and end every state but testing", () => {
    for (const [table, states] of [
      [nodeTransitions, nodeStates],
      [requestTransitions, requestStates],
    ] as const) {
      const known = new Set<unknown>([...states, null]);
      expect(table.every(({ from, to }) => known.has(from) && known.has(to))).toBe(true);
      expect(new Set(table.map(({ from, to }) => `${from} ${to}`)).size).toBe(table.length);
      const left = new Set<unknown>(table.map(({ from }) => from));
      expect(states.filter((state) => !left.has(state) && state !== "testing")).toEqual([]);
    }
  });
});

describe("components", () => {
  it("are written with sorted keys and read back", () => {
    const pool = newComponent({
      kind: "pool",
      hostname: "h",
      state: "running",
      id: "i",
      supportedLabels: ["a"],
      version: "1",
    });
    const text = new TextDecoder().decode(encodeComponent(pool));
    const keys = Object.keys(JSON.parse(text));
    expect(keys).toEqual([...keys].sort());
    expect(decodeComponent(encodeComponent(pool))).toEqual(pool);
    expect(decodeComponent(encodeComponent(changeComponent(pool, { paused: true })))).toMatchObject({
      paused: true,
      priority: 100,
    });
    expect(
      Object.keys(
        JSON.parse(
          new TextDecoder().decode(encodeComponent(newComponent({ kind: "launcher", hostname: "h" }))),
        ),
      ),
    ).toEqual(["hostname", "kind", "model_api", "state", "version"]);
  });

  it("name a launcher's pool as Nodepool does", () => {
    const hex = "0123456789abcdef0123456789abcdef";
    expect(launcherPoolId({ fqdn: "l.example", provider: "cloud", pool: "main", hex })).toBe(
      `l.example-PoolWorker.cloud-main-${hex}`,
    );
    expect(() => launcherPoolId({ fqdn: "l", provider: "c", pool: "m", hex: "x" })).toThrow(
      "32 hexadecimal digits",
    );
  });
});
