import { decodeNode, decodeRequest, isSuspended, paths, RecordError } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { FenceLost, orUndefined } from "@nodeyard/tree";
import { type HeldNode, heldNode, type RecordHandles } from "../held-records.ts";

/**
 * Takes a node's lock without waiting and without creating the node's own path. The record comes from the view; the first write checks
 * its version, and reads the record when it has changed. A record that has become unreadable counts as "busy". "busy": a contender is
 * before us. "gone": neither path nor record is there. Rejects with a TreeError.
 */
export async function lockNode(context: RecordHandles, id: string): Promise<HeldNode | "busy" | "gone"> {
  const held = await context.fence.lock(paths.nodeLock(id));
  if (typeof held === "string") return held;
  const entry = context.view.nodes.byId.get(id);
  if (entry !== undefined) return heldNode(context, held, id, entry.record, entry.version);
  try {
    const found = await orUndefined(context.tree.get(paths.node(id)));
    if (found !== undefined)
      return heldNode(context, held, id, decodeNode(id, found.data), found.stat.version);
  } catch (error) {
    await held.release();
    if (error instanceof RecordError) return "busy";
    throw error;
  }
  await held.release();
  return "gone";
}

/**
 * Sends an unallocated node that is ready or suspended to its deletion, unless a request gets it first. Never rejects for a lost race: another client has
 * the node then, or the next comparison sends it again.
 */
export async function takeOut(context: RecordHandles, id: string, why: string): Promise<void> {
  const node = await lockNode(context, id);
  if (typeof node === "string") return;
  const { state, allocatedTo } = node.record;
  const isFree = (state === "ready" || isSuspended(node.record)) && allocatedTo === null;
  if (!isFree) return node.held.release();
  context.log.info({ node: id, host: node.record.hostname, why }, "deletes a node");
  await node.writeAndRelease({ state: "deleting" }).catch(() => node.held.release());
}

/** Frees a ready node whose request is gone, or was put back without it. True when nothing is left to do. */
export async function deallocateNode(context: RecordHandles, id: string): Promise<boolean> {
  const node = await lockNode(context, id);
  if (node === "gone") return true;
  if (node === "busy") return false;
  try {
    const { state, allocatedTo } = node.record;
    const forgotten = allocatedTo !== null && (await isForgotten(context, allocatedTo));
    // The user of an unlocked node may return it at this moment; the scheduler then decides again.
    const moved = (context.view.nodes.byId.get(id)?.version ?? 0) > node.version;
    if (state !== "ready" || !forgotten || moved) await node.held.release();
    else await node.writeAndRelease({ allocatedTo: null });
    return true;
  } catch (error) {
    const facts = { node: id, error: messageOf(error) };
    if (error instanceof FenceLost)
      context.log.debug(facts, "a node that was being freed was changed by others");
    else context.log.warn(facts, "cannot free a node; will retry");
    await node.held.release().catch(() => {});
    return false;
  }
}

/**
 * Whether no launcher hands nodes to the request any more: while it is `requested` none does, because it becomes `pending` first. Read
 * from the tree, because freeing a node of a live request would give it to two.
 */
async function isForgotten({ tree }: RecordHandles, request: string): Promise<boolean> {
  const found = await orUndefined(tree.get(paths.request(request)));
  return found === undefined || decodeRequest(request, found.data).state === "requested";
}
