import { changeNode, deadLetterPath, encodeNode, type NodeRecord, paths } from "@nodeyard/model";
import { lock, orUndefined, type Tree, TreeError, treeNow } from "@nodeyard/tree";
import type { OperationHandles } from "./handles.ts";
import { listNodes } from "./listing.ts";
import { uploadsTo } from "./provider-info.ts";

/** How long to wait for a node's lock, milliseconds; a client that holds it longer works with the node. */
const LOCK_WAIT_MS = 1_000;
/**
 * The most tries to remove a path beneath which others create znodes: then a daemon with that provider runs, and it would never
 * end.
 */
const TRIES = 10;

/** The records that `erase` removed, and those that it left. */
export interface Erased {
  /** Records of uploads. */
  readonly uploads: number;
  /** Ids of nodes. */
  readonly nodes: readonly string[];
  /** Nodes that were left because a client has locked them. */
  readonly kept: readonly string[];
}

/**
 * Removes the uploads and nodes of a provider from the tree, and deletes nothing in the cloud. `locked`: also nodes that a client
 * has locked. Records that others create during this call stay (docs/contract/operations.md, "Erase"). Not one commit: a call
 * that is cut off is completed by the next. Rejects with TreeError.
 */
export async function eraseProvider(
  handles: OperationHandles,
  provider: string,
  { locked }: { readonly locked: boolean },
): Promise<Erased> {
  const { tree } = handles;
  let uploads = 0;
  for (const found of await uploadsTo(handles, provider)) {
    uploads += found.uploads.length;
    await removeWhole(tree, `${paths.imageProviders(found.image, found.build)}/${provider}`);
  }
  // Nodes whose record cannot be read are matched by the fields that can.
  const { items, skipped } = await listNodes(handles);
  const [nodes, kept]: [string[], string[]] = [[], []];
  for (const { record } of items.filter((item) => item.record.provider === provider)) {
    const gone = locked ? await eraseNode(handles, record) : await eraseUnlocked(handles, record);
    (gone ? nodes : kept).push(record.id);
  }
  for (const { id } of skipped.filter(({ known }) => known.provider === provider)) {
    const gone = locked ? await eraseNode(handles, { id }) : await eraseUnlocked(handles, { id });
    (gone ? nodes : kept).push(id);
  }
  return { uploads, nodes, kept };
}

/** A node whose record cannot be read: nothing can be written to it, so it is only removed. */
interface Unreadable {
  readonly id: string;
}

/** False: a client has its lock. The lock is taken, so that no launcher takes the node in between. */
async function eraseUnlocked(handles: OperationHandles, record: NodeRecord | Unreadable): Promise<boolean> {
  const { tree, clock, random } = handles;
  const waits = { clock, random, createParent: "parent-only", deadlineMs: LOCK_WAIT_MS } as const;
  try {
    // It goes with the node.
    await lock(tree, paths.nodeLock(record.id), waits);
  } catch (error) {
    // Another process has removed the node meanwhile.
    if (error instanceof TreeError && error.code === "tree.no_node") return true;
    if (error instanceof TreeError && error.code === "tree.lock_timeout") return false;
    throw error;
  }
  return eraseNode(handles, record);
}

/** The state first: launchers that hold the node in a cache learn of its end by it. */
async function eraseNode(handles: OperationHandles, record: NodeRecord | Unreadable): Promise<true> {
  const { tree } = handles;
  const path = paths.node(record.id);
  if ("state" in record) {
    const deleted = changeNode(record, { state: "deleted" }, treeNow(handles) / 1000);
    await orUndefined(tree.set(path, encodeNode(deleted)));
  }
  await removeWhole(tree, path);
  // A mark without its node would count as a deletion that is stuck.
  await orUndefined(tree.delete(deadLetterPath(record.id)));
  return true;
}

/** Removes a znode and all that is beneath it, deepest first, as ZooKeeper demands. Gone already: nothing. */
async function removeWhole(tree: Tree, path: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    for (const name of (await orUndefined(tree.children(path))) ?? [])
      await removeWhole(tree, `${path}/${name}`);
    try {
      await orUndefined(tree.delete(path));
      return;
    } catch (error) {
      if (!(error instanceof TreeError) || error.code !== "tree.not_empty" || attempt >= TRIES) throw error;
    }
  }
}
