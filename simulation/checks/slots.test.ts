import type { Op } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { handMade, ID, json, locks, makes, NODE, sets, unlocks } from "./hand-made.ts";

const BACKING = "/nodepool/nodes/0000000001";
const CLAIM = "/nodeyard/slots/0000000001/0";

/** A slot whose user has a contender on its node. */
function inUse() {
  const { does } = handMade({ slicer: "slices" });
  const backing = { state: "in-use", user_data: JSON.stringify({ slots: 2, failed: false }) };
  does(0, "setup", makes(BACKING, backing));
  const claim: Op = { op: "create", path: CLAIM, data: json({ node: ID }) };
  does(0, "launcher-0", claim, makes(NODE, node("ready")));
  does(1, "zuul", locks("zuul"), sets(NODE, node("in-use")));
  return does;
}

function node(state: string): object {
  const place = { backing_node: "0000000001", slot: 0 };
  return { state, provider: "slices", driver_data: place };
}

const frees: Op[] = [sets(NODE, node("deleting")), { op: "delete", path: CLAIM }];

test("a deserted slot rests from its user's end: a launcher that only looks is not a user", () => {
  const does = inUse();
  does(1_000, "zuul", unlocks("zuul"));
  does(1_100, "launcher-1", locks("look"));
  does(1_200, "launcher-1", unlocks("look"));
  does(61_000, "launcher-2", locks("delete"), ...frees);
});

test("nor does a launcher that looks while the user leaves postpone the user's end", () => {
  const does = inUse();
  does(900, "launcher-1", locks("look"));
  does(1_000, "zuul", unlocks("zuul"));
  does(1_100, "launcher-1", unlocks("look"));
  expect(() => does(60_999, "launcher-2", locks("delete"), ...frees)).toThrow("a deserted slot rests");
});

test("a slot that is freed before its minute is over breaks the rule, also after the second user's end", () => {
  const does = inUse();
  does(1_000, "zuul", unlocks("zuul"));
  does(2_000, "cli", locks("cli"));
  does(30_000, "cli", unlocks("cli"));
  expect(() => does(61_000, "launcher-2", locks("delete"), ...frees)).toThrow("a deserted slot rests");
});

test("of a use that was over before a launcher could see its lock, the rest is counted from the begin", () => {
  const does = inUse();
  does(500, "zuul", unlocks("zuul"));
  does(60_001, "launcher-2", locks("delete"), ...frees);
});

test("a slot that was returned is free at once", () => {
  const does = inUse();
  does(1_000, "zuul", sets(NODE, node("used")));
  does(1_000, "zuul", unlocks("zuul"));
  does(1_100, "launcher-2", locks("delete"), ...frees);
});
