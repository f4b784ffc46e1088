import type { AppliedWrite, Op, OpResult } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { LogCheck } from "./log-check.ts";

const BACKING = "/nodepool/nodes/0000000001";
const NODE = "/nodepool/nodes/0000000002";
const CLAIM = "/nodeyard/slots/0000000001/0";

/** A slot whose user stands in its node's line; `does` writes one write `at` virtual milliseconds. */
function inUse(): (at: number, client: string, ...ops: Op[]) => void {
  const check = new LogCheck({ slicer: "slices" });
  let zxid = 0n;
  const does = (at: number, client: string, ...ops: Op[]) => {
    // Sequential creates are told by the name that they were given.
    const results = ops.map(({ op, path }) => ({ op, path }) as OpResult);
    const write: AppliedWrite = { zxid: ++zxid, at, client, session: 1n, ops, results };
    check.take(write, at);
  };
  const backing = { state: "in-use", user_data: JSON.stringify({ slots: 2, failed: false }) };
  does(0, "setup", { op: "create", path: BACKING, data: json(backing), sequential: true });
  does(0, "launcher-0", { op: "create", path: CLAIM, data: json({ node: "0000000002" }) }, made("ready"));
  does(1, "zuul", locks("zuul"), { op: "set", path: NODE, data: node("in-use") });
  return does;
}

function made(state: string): Op {
  return { op: "create", path: NODE, data: node(state), sequential: true };
}

function locks(name: string): Op {
  return { op: "create", path: `${NODE}/lock/${name}__lock__0000000000` };
}

function unlocks(name: string): Op {
  return { op: "delete", path: `${NODE}/lock/${name}__lock__0000000000` };
}

function node(state: string): Uint8Array {
  const place = { backing_node: "0000000001", slot: 0 };
  return json({ state, provider: "slices", driver_data: place });
}

function json(value: object): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

const frees: Op[] = [
  { op: "set", path: NODE, data: node("deleting") },
  { op: "delete", path: CLAIM },
];

test("a deserted slot rests from its user's end: a launcher that only looks is no user", () => {
  const does = inUse();
  does(1_000, "zuul", unlocks("zuul"));
  does(1_100, "launcher-1", locks("look"));
  does(1_200, "launcher-1", unlocks("look"));
  does(61_000, "launcher-2", locks("delete"), ...frees);
});

test("nor does one that looks while the user goes put the user's end off", () => {
  const does = inUse();
  does(900, "launcher-1", locks("look"));
  does(1_000, "zuul", unlocks("zuul"));
  does(1_100, "launcher-1", unlocks("look"));
  expect(() => does(60_999, "launcher-2", locks("delete"), ...frees)).toThrow("a deserted slot rests");
});

test("a slot that is freed before its minute is over is found out, also by the second user's end", () => {
  const does = inUse();
  does(1_000, "zuul", unlocks("zuul"));
  does(2_000, "cli", locks("cli"));
  does(30_000, "cli", unlocks("cli"));
  expect(() => does(61_000, "launcher-2", locks("delete"), ...frees)).toThrow("a deserted slot rests");
});

test("one that is given back is free at once", () => {
  const does = inUse();
  does(1_000, "zuul", { op: "set", path: NODE, data: node("used") });
  does(1_000, "zuul", unlocks("zuul"));
  does(1_100, "launcher-2", locks("delete"), ...frees);
});
