import type { NodePatch } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { FenceLost, type Op, TreeError } from "@nodeyard/tree";
import type { HeldNode, HeldRequest, RecordHandles } from "../held-records.ts";
import type { RequestHandles } from "../nodes/handles.ts";
import { lockNode } from "../nodes/node-lock.ts";
import { lockRequest } from "./accept.ts";

/** How the work on a request ended. "replan": it is `requested` again and will be planned after a pause. */
export type Handled =
  | "fulfilled"
  /** This pool declined; other registered pools may still serve it. */
  | "declined"
  /** It was declined, and no registered pool is left. */
  | "failed"
  | "replan"
  /** Another client has its lock, or it cannot be decided yet; nothing was written. */
  | "busy"
  /** It is not what the plan was made for any more; the view's next event says what it is. */
  | "changed"
  /** Its requestor has deleted it. */
  | "vanished"
  /** The lock or the connection was lost on the way: a write may or may not have been applied. */
  | "lost";

/** The operation that gives a lock back as part of a commit. */
const unlock = (held: { readonly held: { readonly contender: string } }): Op => ({
  op: "delete",
  path: held.held.contender,
});

/**
 * Delivers a whole nodeset in one commit: first the node locks are released, then the request becomes `fulfilled`, then its own lock
 * is released. So a client that sees `fulfilled` finds the nodes unlocked (docs/contract/write-order.md, "Finishing a request").
 * `last`: the node whose `ready` is not written yet; it is, before anything else of the commit. Rejects with FenceLost when the request
 * or one of the locks is gone; nothing is written then.
 */
export async function fulfil(
  request: HeldRequest,
  nodes: readonly HeldNode[],
  last?: { readonly node: HeldNode; readonly ready: NodePatch },
): Promise<void> {
  const patch = { state: "fulfilled", nodes: nodes.map((node) => node.id) } as const;
  const around = (set: Op) => [...nodes.map(unlock), set, unlock(request)];
  if (last === undefined) await request.write(patch, around);
  else await last.node.write(last.ready, (ready) => [ready, ...around(request.setting(patch))]);
}

/** Takes nodes back from a request that will not get them: ready ones become free, all are unlocked. */
export async function releaseNodes(context: RecordHandles, nodes: readonly HeldNode[]): Promise<void> {
  await Promise.all(nodes.map((node) => releaseNode(context, node)));
}

/** Never rejects for a lock or a connection that is lost: the node is unlocked with the session, and a sweep frees it. */
async function releaseNode(context: RecordHandles, node: HeldNode): Promise<void> {
  try {
    if (node.record.allocatedTo === null) await node.held.release();
    else await node.writeAndRelease({ allocatedTo: null });
  } catch (error) {
    if (!(error instanceof FenceLost) && !(error instanceof TreeError)) throw error;
    context.log.info({ node: node.id, error: messageOf(error) }, "cannot release a node; the sweep will");
    await node.held.release().catch(() => {});
  }
}

/**
 * Declines for `pools` and gives the lock back. The request fails when every registered pool has declined and no other is expected
 * (docs/contract/launcher.md, "Declining"); an empty registry decides nothing. Returns the state it has now.
 */
export async function decline(
  context: RecordHandles & Pick<RequestHandles, "awaitsOffer">,
  request: HeldRequest,
  pools: readonly string[],
): Promise<"requested" | "failed"> {
  const declinedBy = [...request.record.declinedBy];
  for (const id of pools) if (!declinedBy.includes(id)) declinedBy.push(id);
  const awaits = () => context.awaitsOffer({ id: request.id, record: { ...request.record, declinedBy } });
  const state = everyoneDeclined(context, declinedBy) && !awaits() ? "failed" : "requested";
  await request.writeAndRelease({ state, declinedBy });
  return state;
}

/**
 * Whether all registered pools are among `declinedBy`. A component without an id can never decline and decides nothing;
 * nor does a registry that we do not see whole, since it may lack a pool that says yes.
 */
export function everyoneDeclined(
  { view }: Pick<RecordHandles, "view">,
  declinedBy: readonly string[],
): boolean {
  if (!view.complete) return false;
  let pools = 0;
  for (const { kind, record } of view.components.values()) {
    if (kind !== "pool" || record.id === null) continue;
    if (!declinedBy.includes(record.id)) return false;
    pools++;
  }
  return pools > 0;
}

/**
 * A pending request whose lock can be had has lost its handler: its nodes are taken back, and it is put back for another plan
 * (docs/contract/launcher.md, "Lost requests"). `declined_by` stays. Rejects with the error of the commit, and its lock is released.
 */
export async function resetLost(context: RecordHandles, id: string): Promise<Handled> {
  const request = await lockRequest(context, id, true);
  if (typeof request === "string") return request === "gone" ? "vanished" : request;
  if (request.record.state !== "pending") {
    await request.held.release();
    return "changed";
  }
  try {
    await Promise.all([...context.view.nodes.byRequest.get(id)].map((node) => takeBack(context, id, node)));
    await request.writeAndRelease({ state: "requested", nodes: [] });
  } catch (error) {
    await request.held.release();
    throw error;
  }
  context.journal.write({ event: "request.reset", request: id, facts: {} });
  return "replan";
}

/** Never waits for a node's lock: a locked node is someone's, and is looked at again when it is unlocked. */
async function takeBack(context: RecordHandles, request: string, id: string): Promise<void> {
  const entry = context.view.nodes.byId.get(id);
  if (entry === undefined || entry.contenders.length > 0) return;
  const node = await lockNode(context, id);
  if (typeof node === "string") return;
  const { state, allocatedTo } = node.record;
  if (allocatedTo !== request) return node.held.release();
  const patch = state === "init" ? { state: "deleting" as const, allocatedTo: null } : { allocatedTo: null };
  await node.writeAndRelease(patch).catch(() => node.held.release());
}
