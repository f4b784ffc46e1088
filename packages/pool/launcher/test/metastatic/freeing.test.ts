import { decodeNode, encodeClaim, paths, slotData } from "@nodeyard/model";
import { seededRandom } from "@nodeyard/runtime";
import { memoryLog } from "@nodeyard/telemetry";
import { type CallInfo, type CheckOp, Fence, FenceLost, type MemoryTree } from "@nodeyard/tree";
import type { SlotClaim } from "@nodeyard/view";
import { beforeEach, describe, expect, test } from "vitest";
import { type HeldNode, heldNode, type RecordHandles } from "../../src/held-records.ts";
import { Ledgers } from "../../src/limits/ledger.ts";
import { dropClaim } from "../../src/metastatic/compare.ts";
import { freeSlot } from "../../src/nodes/slots.ts";
import { config, Lab } from "./lab.ts";

const BACKING = "0000000008";
const SLOT = `/nodeyard/slots/${BACKING}/1`;
const ELECTED = "/nodeyard/elected";
const fence: CheckOp = { op: "check", path: ELECTED };

let lab: Lab;
let tree: MemoryTree;
let context: RecordHandles;

beforeEach(async () => {
  lab = new Lab();
  tree = lab.cluster.connect({ name: "a", sessionTimeoutMs: 10_000 });
  const handles = { tree, clock: lab.clock, random: seededRandom(1), log: memoryLog() };
  const ledgers = new Ledgers({ ...handles, view: undefined as never, ages: undefined as never });
  context = { ...handles, ledgers } as unknown as RecordHandles;
  await lab.put(ELECTED, {});
});

/** A record that says to live in the slot. */
function placed(state: string, fields: object = {}): Promise<string> {
  const driverData = { ...slotData({ id: "x", pool: "main", provider: "slicer" }, place), sliver: "kept" };
  return lab.makeNode({ state, provider: "slicer", pool: "main", driver_data: driverData, ...fields });
}

const place = { backing: BACKING, slot: 1 };

/** Its claim, as a picture shows it that may be old: each claim of a slot has the same path and begins at version 0. */
function claimOf(node: string): SlotClaim {
  return { path: SLOT, backing: BACKING, name: "1", node };
}

async function claimed(node: string): Promise<void> {
  await lab.put(SLOT, Buffer.from(encodeClaim(node)).toString());
}

function holder(): unknown {
  return lab.json(SLOT)?.node;
}

/** A node whose lock we hold, with its record as it is now. */
async function held(id: string): Promise<HeldNode> {
  await lab.folder(paths.nodeLock(id));
  const lock = await lab.settle(new Fence(tree, lab.clock, seededRandom(1)).lockExisting(paths.nodeLock(id)));
  if (typeof lock === "string") throw new Error(lock);
  const { version } = lab.cluster.znodes.stat(paths.node(id))!;
  return heldNode(context, lock, id, decodeNode(id, Buffer.from(lab.text(paths.node(id))!)), version);
}

/** What the slot's next node does, in one commit as a launcher does it. */
async function passOn(from: string, to: string): Promise<void> {
  const freed = { ...lab.node(from), driver_data: { backing_node: null } };
  await lab.settle(
    lab.other.commit([
      { op: "set", path: paths.node(from), data: Buffer.from(JSON.stringify(freed)) },
      { op: "delete", path: SLOT },
    ]),
  );
  await claimed(to);
}

describe("a claim without a record", () => {
  test("is freed", async () => {
    await claimed("0000000075");
    await lab.settle(dropClaim(context, claimOf("0000000075"), fence));
    expect(holder()).toBeUndefined();
  });

  test("is the next node's by now: that keeps it", async () => {
    const next = await placed("ready");
    await claimed(next);
    await lab.settle(dropClaim(context, claimOf("0000000075"), fence));
    expect(holder()).toBe(next);
  });

  test("is left alone by a launcher that is no longer the owner", async () => {
    await claimed("0000000075");
    await lab.settle(lab.other.delete(ELECTED));
    await expect(lab.settle(dropClaim(context, claimOf("0000000075"), fence))).rejects.toThrow();
    expect(holder()).toBe("0000000075");
  });

  test("is left when the record comes to speak of it between the look and the commit", async () => {
    const node = await placed("ready", { driver_data: null });
    await claimed(node);
    lab.fault = (call) => {
      if (frees(call)) void lab.other.set(paths.node(node), Buffer.from(JSON.stringify(lab.node(node))));
      return undefined;
    };
    await expect(lab.settle(dropClaim(context, claimOf(node), fence))).rejects.toThrow();
    expect(holder()).toBe(node);
  });
});

describe("the slot of a node that is held", () => {
  test("is freed with its place in the record; what else the record says stays", async () => {
    const id = await placed("deleting");
    await claimed(id);
    expect(await lab.settle(freeSlot(await held(id), [claimOf(id)]))).toBe(1);
    expect(holder()).toBeUndefined();
    expect(lab.node(id)).toMatchObject({
      state: "deleting",
      driver_data: { backing_node: null, sliver: "kept" },
    });
  });

  test("is the one that its record names: another claim of its own is for the owner to compare", async () => {
    const id = await placed("deleting");
    await claimed(id);
    const other = { path: `/nodeyard/slots/${BACKING}/0`, backing: BACKING, name: "0", node: id };
    await lab.put(other.path, Buffer.from(encodeClaim(id)).toString());
    expect(await lab.settle(freeSlot(await held(id), [other, claimOf(id)]))).toBe(1);
    expect(holder()).toBeUndefined();
    expect(lab.json(other.path)?.node).toBe(id);
  });

  test("is not freed twice: its next claim looks the same", async () => {
    const id = await placed("deleting");
    const next = await placed("ready");
    await claimed(id);
    // The holder of the lock before us freed it, and we have not seen that: our record is of before.
    const node = await held(id);
    await passOn(id, next);
    await expect(lab.settle(freeSlot(node, [claimOf(id)]))).rejects.toThrow(FenceLost);
    expect(holder()).toBe(next);
    // Nor once we have.
    expect(await lab.settle(freeSlot(node, [claimOf(id)]))).toBe(0);
    expect(holder()).toBe(next);
  });

  test("whose answer is lost is not freed again, though another has it before the loss is known", async () => {
    const id = await placed("deleting");
    const next = await placed("ready");
    await claimed(id);
    let lost = 0;
    lab.fault = (call) => {
      if (!frees(call) || lost++ > 0) return undefined;
      return "lose-reply";
    };
    const node = await held(id);
    const freeing = freeSlot(node, [claimOf(id)]);
    await lab.until("it is free", () => holder() === undefined);
    await claimed(next);
    expect(await lab.settle(freeing)).toBe(1);
    expect(lost).toBe(1);
    expect(holder()).toBe(next);
  });

  test("is left where its record speaks of another: that is for the owner to compare", async () => {
    const id = await placed("deleting", { driver_data: null });
    await claimed(id);
    expect(await lab.settle(freeSlot(await held(id), [claimOf(id)]))).toBe(0);
    expect(holder()).toBe(id);
  });
});

test("an owner that is slow to compare frees no slot that changed hands meanwhile", async () => {
  lab = new Lab();
  const only = config({ "max-parallel-jobs": 1, "grace-time": 3_600 });
  await lab.start("a", only);
  await lab.start("b", only);
  const first = await lab.get();
  const { backing, slot } = lab.place(first);
  const claim = `/nodeyard/slots/${backing}/${slot}`;
  const lock = paths.nodeLock(first.id);
  await lab.until("nobody looks whether it is locked", () => lab.children(lock).length === 0);
  let slow = 0;
  lab.fault = ({ client, kind, path }) =>
    client === "a" && kind === "get" && path === paths.node(first.id) && slow++ === 0
      ? { delayMs: 1_000 }
      : undefined;
  // The record goes before the claim, as a picture that is pieced together may show it.
  await lab.settle(lab.other.delete(lock));
  await lab.settle(lab.other.delete(paths.node(first.id)));
  await lab.until("it looks whether the claim's node is there", () => slow === 1);
  await lab.settle(lab.other.delete(claim));
  const second = await lab.get();
  expect(lab.place(second)).toEqual({ backing, slot });
  await lab.run(5_000);
  // A claim that was wrongly freed is made again, if nobody is quicker.
  const freed = lab.cluster.log.filter(({ ops }) =>
    ops.some((op) => op.op === "delete" && op.path === claim),
  );
  expect(freed.map(({ client }) => client)).toEqual(["other"]);
  lab.check();
});

function frees({ kind, ops }: CallInfo): boolean {
  return kind === "write" && ops.some(({ op, path }) => op === "delete" && path === SLOT);
}
