import { listedNode, retireNode } from "@nodeyard/operations";
import { nodeFields, rowOf } from "@nodeyard/operations/listing";
import { seededRandom } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { config, Lab, metal } from "./lab.ts";

test("explain and list show where a node lives, what a backing node carries, and what a node waits for", async () => {
  const lab = new Lab();
  await lab.start("a", config({}, {}, [metal({ "max-servers": 1 })]));
  const [first, second] = [await lab.get(), await lab.get()];
  const { backing } = lab.place(first);
  const asked = await lab.slice();
  const waiting = await lab.until("it is being launched", () =>
    lab.ends().find(({ state }) => state === "building"),
  );
  await lab.run(100);
  const handles = { tree: lab.other, clock: lab.clock, random: seededRandom(1) };
  const story = (id: string) => lab.explain("node", id);

  expect((await story(first.id)).about).toMatchObject({ backing_node: backing, slot: 0 });
  const carried = await story(backing);
  expect(carried.about).toMatchObject({
    slots_of: "slice",
    slots: 2,
    slots_taken: { 0: first.id, 1: second.id },
    takes_no_more: false,
    locked_by: "NodePool:metastatic:slicer",
  });
  expect(carried.next).toBe(
    "Provider slicer gives out slice on it. When it has been empty for longer than grace-time, it is deleted.",
  );
  const request = lab
    .children("/nodepool/requests")
    .find((id) => lab.request(id)?.requestor === "NodePool:metastatic:slicer");
  const waits = await story(waiting.id);
  expect(waits.waits_for).toMatchObject({ code: "node.waits-for-slot", facts: { requests: [request] } });
  expect(waits.next).toContain(`nodeyard explain ${request}`);
  const stuck = await lab.explain("request", asked);
  expect(stuck).toMatchObject({ state: "pending", about: { waits_for_requests: [request] } });
  expect(stuck.next).toContain(`nodeyard explain ${request}`);

  const listed = await lab.settle(listedNode(handles, second.id));
  expect(rowOf(nodeFields, listed!)).toMatchObject({ backing_node: backing, slot: 1 });
});

test("retire takes a node with a slot, or what carries it, and nothing else", async () => {
  const lab = new Lab();
  await lab.start("a", config({ "grace-time": 60 }));
  const node = await lab.get();
  const { backing } = lab.place(node);
  const handles = { tree: lab.other, clock: lab.clock, random: seededRandom(1) };
  expect(await lab.settle(retireNode(handles, node.id, "slow disk"))).toBe(backing);
  expect(await lab.settle(retireNode(handles, backing, "again"))).toBe(backing);
  await lab.until("it is written down", () => lab.userData(backing).failed === true);
  expect(lab.place(await lab.get()).backing).not.toBe(backing);
  await expect(lab.settle(retireNode(handles, "0000009999", "x"))).rejects.toMatchObject({
    code: "slot.no_such_node",
  });
  const plain = await lab.fulfilled(await lab.ask({ node_types: ["large"] }));
  const [id] = plain.nodes as string[];
  await expect(lab.settle(retireNode(handles, id!, "x"))).rejects.toMatchObject({ code: "slot.none" });
});
