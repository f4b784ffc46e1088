import { decodeNode, decodeRequest, paths } from "@nodeyard/model";
import type { Op } from "@nodeyard/tree";
import { SlotTable, type ViewEvent } from "@nodeyard/view";
import { expect, test } from "vitest";
import { Slots } from "../../../scheduler/src/slot-index.ts";
import type { HeldNode } from "../../src/held-records.ts";
import { claimSlot } from "../../src/nodes/slots.ts";
import { OWNER } from "./lab.ts";

const BACKING = "0000000001";
const WANT = { provider: "slicer", label: "slice" };
const request = (id: string) => ({
  id,
  record: decodeRequest(
    "100-0000000001",
    Buffer.from(JSON.stringify({ state: "requested", node_types: ["slice"] })),
  ),
});

/** The backing node, as the view tells of it. */
function backing(version: number, failed: boolean, contenders: readonly string[] = ["a__lock__0000000000"]) {
  const data = { owner: OWNER, label: "slice", slots: 2, failed, launched: 1 };
  const record = { state: "in-use", type: ["large"], provider: "metal", user_data: JSON.stringify(data) };
  const after = {
    id: BACKING,
    record: decodeNode(BACKING, Buffer.from(JSON.stringify(record))),
    version,
    contenders,
  };
  return { type: "node", id: BACKING, after } as const;
}

/** The znode of a slot folder, or of what is in it. */
function own(name = "") {
  const path = `/nodeyard/slots/${BACKING}${name}`;
  const data = Buffer.from(JSON.stringify({ v: 1, provider: "slicer" }));
  return { type: "own", path, after: { path, data, version: 0, created: 0 } } as const;
}

/** What is known of one backing node that takes slots, and the slot that would be chosen: the view's half and the scheduler's. */
function stand(slots = 2) {
  const table = new SlotTable();
  const known = new Slots();
  const take = (event: ViewEvent) => {
    for (const id of table.take(event)) known.set(id, table.facts(id));
  };
  take(own());
  take(backing(4, false));
  const settings = { backingLabel: "large", slots, graceMs: 0, minRetentionMs: 0, maxAgeMs: 60_000 };
  const choose = (now = 2_000) => {
    const chosen = known.promise(
      WANT,
      settings,
      { now, steady: now, trusted: true },
      request("100-0000000001"),
    );
    if (chosen !== undefined) known.lost(chosen);
    return chosen;
  };
  return { known, take, choose, settings };
}

test("a backing node that is retired takes no more slots, though its record does not say so yet", () => {
  const { take, choose } = stand();
  expect(choose()).toBeDefined();
  const retired = own("/retired");
  take(retired);
  expect(choose()).toBeUndefined();
  take({ ...retired, after: undefined });
  expect(choose()).toBeDefined();
});

test("a backing node without a lock takes no slots, whatever its record says", () => {
  const { take, choose } = stand();
  take(backing(4, false, []));
  expect(choose()).toBeUndefined();
});

test("a backing node takes as many slots as it has and as its label says, whichever is less", () => {
  for (const slots of [1, 3]) {
    const { take, choose } = stand(slots);
    const taken: number[] = [];
    for (let chosen = choose(); chosen !== undefined; chosen = choose()) {
      taken.push(chosen.slot);
      take(own(`/${chosen.slot}`));
    }
    expect(taken).toEqual(slots === 1 ? [0] : [0, 1]);
  }
});

test("a claim requires its backing node as it was when the slot was chosen, despite later events", async () => {
  const { take, choose } = stand();
  const chosen = choose()!;
  expect(chosen).toMatchObject({ backing: BACKING, slot: 0 });

  take(backing(5, true));
  expect(choose()).toBeUndefined();
  let ops: readonly Op[] = [];
  const node = {
    id: "0000000002",
    held: { contender: "/contender" },
    write: async (_: unknown, withOps: (set: Op) => readonly Op[]) => {
      ops = withOps({ op: "check", path: "/record" });
    },
  };
  await claimSlot(node as unknown as HeldNode, chosen, {});
  expect(ops).toContainEqual({ op: "check", path: paths.node(BACKING), version: 4 });
});

test("a backing node takes no more slots from its max-age on", () => {
  const { choose } = stand();
  expect(choose(61_000)).toBeDefined();
  expect(choose(61_001)).toBeUndefined();
});

test("a slot that is promised to one request is promised to no other until it is claimed or given up", () => {
  const { known, take, settings } = stand();
  const moment = { now: 2_000, steady: 2_000, trusted: true };
  const promise = (id: string) => known.promise(WANT, settings, moment, request(id));
  expect(promise("a")).toMatchObject({ slot: 0 });
  expect(promise("b")).toMatchObject({ slot: 1 });
  expect(promise("c")).toBeUndefined();
  known.forget("a");
  expect(promise("c")).toMatchObject({ slot: 0 });
  take(own("/0"));
  expect([...known.promised().values()]).toEqual(["b"]);
});
