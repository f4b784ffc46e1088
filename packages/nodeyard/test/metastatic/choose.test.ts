import { decodeNode, paths } from "@nodeyard/model";
import type { Op } from "@nodeyard/tree";
import { expect, test } from "vitest";
import type { HeldNode } from "../../src/launcher/held-records.ts";
import { chooseSlot } from "../../src/launcher/metastatic/choose.ts";
import type { MetastaticLabelOwn } from "../../src/launcher/metastatic/config.ts";
import { SlotIndex } from "../../src/launcher/metastatic/slot-index.ts";
import { claimSlot } from "../../src/launcher/metastatic/slot-lock.ts";
import { OWNER } from "./lab.ts";

const BACKING = "0000000001";

/** The backing node, as the view tells of it. */
function told(version: number, failed: boolean, contenders: readonly string[] = ["a__lock__0000000000"]) {
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

/** What is known of one backing node that takes slots, and the slot that would be chosen. */
function stand(slots = 2) {
  const book = new SlotIndex("slicer");
  book.take(own());
  book.take(told(4, false));
  const settings = { slots, maxAgeMs: Number.POSITIVE_INFINITY } as MetastaticLabelOwn;
  const choose = () => chooseSlot(book, "slice", settings, (_, instant) => 2_000 - instant, new Set());
  return { book, choose };
}

test("a backing node that is retired takes no more slots, though its record does not say so yet", () => {
  const { book, choose } = stand();
  expect(choose()).toBeDefined();
  const retired = own("/retired");
  book.take(retired);
  expect(choose()).toBeUndefined();
  book.take({ ...retired, after: undefined });
  expect(choose()).toBeDefined();
});

test("a backing node that nobody has locked takes no slots, whatever its record says", () => {
  const { book, choose } = stand();
  book.take(told(4, false, []));
  expect(choose()).toBeUndefined();
});

test("a backing node takes as many slots as it has and as its label says, whichever is less", () => {
  for (const slots of [1, 3]) {
    const { book, choose } = stand(slots);
    const taken: number[] = [];
    for (let chosen = choose(); chosen !== undefined; chosen = choose()) {
      taken.push(chosen.slot);
      book.take(own(`/${chosen.slot}`));
    }
    expect(taken).toEqual(slots === 1 ? [0] : [0, 1]);
  }
});

test("a claim demands its backing node as it was when the slot was chosen, whatever was heard of it since", async () => {
  const { book, choose } = stand();
  const chosen = choose()!;
  expect(chosen).toMatchObject({ backing: BACKING, slot: 0 });

  book.take(told(5, true));
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
