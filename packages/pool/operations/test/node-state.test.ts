import { decodeNode, encodeNode, type NodeState, newNode, paths } from "@nodeyard/model";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { CommitFailed, createMemoryTree, type Tree } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { deleteNode, holdNode } from "../src/index.ts";

async function nodeIn(state: NodeState) {
  const handles = { clock: new VirtualClock(), random: seededRandom(3) };
  const tree = createMemoryTree(handles).connect();
  for (const path of ["/nodepool", paths.nodes]) await tree.create(path);
  const made = await tree.create(`${paths.nodes}/`, encodeNode(newNode({ state }, 0)), { sequential: true });
  const id = made.path.slice(-10);
  const now = async () => (await tree.get(made.path)).stat.version;
  const read = async () => decodeNode(id, (await tree.get(made.path)).data);
  return { handles: { ...handles, tree }, id, now, read };
}

// Found by the simulation: the operation waits for the lock, and the node may be on its way out by then.
test.each(["deleting", "deleted", "building"] as const)("a node that is %s is not held", async (state) => {
  const { handles, id, now } = await nodeIn(state);
  await expect(holdNode(handles, id, { comment: "look", forSeconds: 0 })).rejects.toMatchObject({
    code: "operation.wrong_state",
  });
  expect(await now()).toBe(0);
});

test.each([
  [600, 600],
  [0, null],
])("a node is held for as long as was asked: %i s", async (forSeconds, expected) => {
  const { handles, id, read } = await nodeIn("in-use");
  await holdNode(handles, id, { comment: "look", forSeconds });
  expect(await read()).toMatchObject({ state: "hold", holdExpiration: expected, comment: "look" });
});

test("a node that is being deleted may be deleted again", async () => {
  const { handles, id, now } = await nodeIn("deleting");
  await deleteNode(handles, id);
  expect(await now()).toBe(1);
});

test("an operator whose lock has gone by the time of the write writes nothing", async () => {
  const { handles, id, now } = await nodeIn("ready");
  const { tree } = handles;
  const parent = paths.nodeLock(id);
  const commit: Tree["commit"] = async (ops) => {
    if (ops.some(({ path }) => path === paths.node(id)))
      for (const name of await tree.children(parent)) await tree.delete(`${parent}/${name}`);
    return tree.commit(ops);
  };
  const robbed = new Proxy(tree, {
    get(_, key: keyof Tree) {
      const method = key === "commit" ? commit : tree[key];
      return typeof method === "function" ? method.bind(tree) : method;
    },
  });
  await expect(deleteNode({ ...handles, tree: robbed }, id)).rejects.toBeInstanceOf(CommitFailed);
  expect(await now()).toBe(0);
});
