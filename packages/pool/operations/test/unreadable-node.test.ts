import { encodeNode, newNode, paths } from "@nodeyard/model";
import { seededRandom, systemClock } from "@nodeyard/runtime";
import { createMemoryTree, TreeError } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { deleteNode, eraseProvider, holdNode, providerRecords } from "../src/index.ts";

const NONSENSE = [
  "nonsense",
  "",
  "[]",
  '{"state": "verifying", "provider": "lab"}',
  '{"state": "ready", "provider": 7}',
];

async function unreadableNode(text: string) {
  const handles = { clock: systemClock, random: seededRandom(3) };
  const tree = createMemoryTree(handles).connect();
  for (const path of ["/nodepool", paths.nodes]) await tree.create(path);
  const record = encodeNode(newNode({ state: "ready", provider: "lab" }, 0));
  const made = await tree.create(`${paths.nodes}/`, record, { sequential: true });
  await tree.set(made.path, Buffer.from(text));
  const id = made.path.slice(-10);
  const read = async () => {
    try {
      return Buffer.from((await tree.get(made.path)).data).toString();
    } catch (error) {
      if (error instanceof TreeError && error.code === "tree.no_node") return undefined;
      throw error;
    }
  };
  return { handles: { ...handles, tree }, tree, id, text: read };
}

test.each(NONSENSE)("a node whose record is %j can be removed, and not be held", async (nonsense) => {
  const { handles, tree, id, text } = await unreadableNode(nonsense);
  await expect(holdNode(handles, id, { comment: "look", forSeconds: 0 })).rejects.toMatchObject({
    code: "operation.unreadable_node",
  });
  expect(await text()).toBe(nonsense);
  await deleteNode(handles, id);
  expect(await text()).toBeUndefined();
  expect(await tree.children(paths.nodes)).toEqual([]);
});

test("the holder of the lock of an unreadable node keeps it", async () => {
  const { handles, tree, id, text } = await unreadableNode("nonsense");
  await tree.create(paths.nodeLock(id));
  const options = { ephemeral: true, sequential: true };
  const { path } = await tree.create(`${paths.nodeLock(id)}/${"a".repeat(32)}__lock__`, undefined, options);
  await expect(deleteNode(handles, id)).rejects.toMatchObject({ code: "operation.node_busy" });
  expect(await text()).toBe("nonsense");
  await tree.delete(path);
  await deleteNode(handles, id);
  expect(await text()).toBeUndefined();
});

test("a path that never had data is no node", async () => {
  const { handles, tree } = await unreadableNode("nonsense");
  await tree.create(paths.node("0000000900"));
  await expect(deleteNode(handles, "0000000900")).rejects.toMatchObject({ code: "operation.no_node" });
});

test("the info of a provider has the nodes that may be its own, and erase removes those that are", async () => {
  const { handles, id, text } = await unreadableNode('{"state": "verifying", "provider": "lab"}');
  const reported = async (provider: string) => (await providerRecords(handles, provider)).unreadable;
  expect([await reported("lab"), await reported("cloud")]).toEqual([[id], []]);
  expect((await eraseProvider(handles, "cloud", { locked: false })).nodes).toEqual([]);
  expect((await eraseProvider(handles, "lab", { locked: false })).nodes).toEqual([id]);
  expect(await text()).toBeUndefined();
  const nameless = await unreadableNode("nonsense");
  expect((await providerRecords(nameless.handles, "cloud")).unreadable).toHaveLength(1);
  expect((await eraseProvider(nameless.handles, "cloud", { locked: true })).nodes).toEqual([]);
});
