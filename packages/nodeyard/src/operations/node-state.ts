import {
  changeNode,
  decodeNode,
  encodeNode,
  mayGo,
  type NodePatch,
  type NodeState,
  paths,
} from "@nodeyard/model";
import { NodeyardError } from "@nodeyard/runtime";
import { lock, type Tree, TreeError } from "@nodeyard/tree";
import { type OperationHandles, orUndefined, treeNow } from "./handles.ts";

/** How long `delete` and `hold` wait for a node's lock (spec zookeeper.md 3.3). */
const LOCK_WAIT_MS = 5_000;

export class NodeOperationError extends NodeyardError {}

/** Marks a node for deletion; a launcher that serves its provider carries it out. */
export async function deleteNode(handles: OperationHandles, id: string): Promise<void> {
  await changeLocked(handles, id, { state: "deleting" });
}

/** Holds a node: nobody deletes it before `forSeconds` have passed (0: no limit of its own). */
export async function holdNode(
  handles: OperationHandles,
  id: string,
  facts: { readonly comment: string; readonly forSeconds: number },
): Promise<void> {
  await changeLocked(handles, id, {
    state: "hold",
    comment: facts.comment,
    holdExpiration: facts.forSeconds > 0 ? facts.forSeconds : null,
  });
}

async function changeLocked(
  handles: OperationHandles,
  id: string,
  patch: NodePatch & { readonly state: NodeState },
): Promise<void> {
  const { tree } = handles;
  if (!/^\d{10}$/.test(id))
    throw new NodeOperationError(
      "operation.bad_node_id",
      `${JSON.stringify(id)} is not a node id: ten digits, as "nodeyard list" shows them`,
    );
  if ((await tree.stat(paths.node(id))) === undefined) throw unknownNode(id);
  const held = await lockNode(handles, tree, id);
  try {
    const found = await orUndefined(tree.get(paths.node(id)));
    if (found === undefined || found.data.length === 0) throw unknownNode(id);
    const before = decodeNode(id, found.data);
    if (!mayGo("node", before.state, patch.state)) throw wrongState(id, before.state, patch.state);
    const record = changeNode(before, patch, treeNow(handles) / 1000);
    await tree.commit([
      { op: "check", path: held.contender },
      { op: "set", path: paths.node(id), data: encodeNode(record), version: found.stat.version },
    ]);
  } finally {
    await held.release();
  }
}

async function lockNode({ clock, random }: OperationHandles, tree: Tree, id: string) {
  try {
    return await lock(tree, paths.nodeLock(id), {
      clock,
      random,
      createParent: "parent-only",
      deadlineMs: LOCK_WAIT_MS,
    });
  } catch (error) {
    if (error instanceof TreeError && error.code === "tree.no_node") throw unknownNode(id);
    if (error instanceof TreeError && error.code === "tree.lock_timeout") {
      throw new NodeOperationError(
        "operation.node_busy",
        `node ${id} is locked by someone else for more than ${LOCK_WAIT_MS / 1000} s: "nodeyard explain ${id}" says who has it; a launcher's work ends by itself, then try again; who uses it keeps it until it is given back`,
        { cause: error },
      );
    }
    throw error;
  }
}

/** Whoever waited for the lock of a node may get it when its fate is decided. */
function wrongState(id: string, from: NodeState, to: NodeState): NodeOperationError {
  return new NodeOperationError(
    "operation.wrong_state",
    `node ${id} is ${from} by now and cannot become ${to}; "nodeyard explain ${id}" tells its story`,
  );
}

function unknownNode(id: string): NodeOperationError {
  return new NodeOperationError(
    "operation.no_node",
    `there is no node ${id}; "nodeyard list" shows those that are there`,
  );
}
