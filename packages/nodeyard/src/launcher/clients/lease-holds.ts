import { decodeRequest, paths } from "@nodeyard/model";
import { hexId, NodeyardError } from "@nodeyard/runtime";
import { type Op, TreeError } from "@nodeyard/tree";
import { type Lease, leaseRequestor } from "../../operations/index.ts";
import type { OwnEntry } from "../../view/index.ts";
import type { Context } from "../context.ts";
import { heldNode } from "../fence/records.ts";
import { lockNode } from "../nodes/node-lock.ts";

/**
 * `in-use`, under a contender that outlives every session; entered twice, it finds its own. False when there is no such
 * node any more, or no longer for this request. The commit checks the lease: one that was released meanwhile is ended by
 * others, who would never look for a hold that comes later.
 */
export async function holdNode(
  context: Context,
  lease: Lease,
  entry: OwnEntry,
  request: string,
  id: string,
): Promise<boolean> {
  const parent = paths.nodeLock(id);
  const names = await context.tree.children(parent).catch(emptyWhenMissing);
  for (const name of names) {
    const found = await context.tree.get(`${parent}/${name}`).catch(undefinedWhenMissing);
    if (found !== undefined && Buffer.from(found.data).toString() === leaseRequestor(lease.id)) return true;
  }
  const node = await lockNode(context, id);
  if (node === "gone") return false;
  if (node === "busy") throw new Busy(id, lease.id);
  if (node.record.allocatedTo !== request) {
    await context.fence.release(node.held);
    return false;
  }
  const durable: Op = {
    op: "create",
    path: `${parent}/${hexId(context.random)}__lock__`,
    data: Buffer.from(leaseRequestor(lease.id)),
    sequential: true,
  };
  await node
    .write({ state: "in-use" }, (set) => [
      { op: "check", path: node.held.contender },
      { op: "check", path: entry.path, version: entry.version },
      durable,
      set,
      { op: "delete", path: node.held.contender },
    ])
    .catch(async (error: unknown) => {
      await context.fence.release(node.held);
      throw error;
    });
  return true;
}

/** What a request says now: the view may still show it as it was before it was fulfilled and its nodes were held. */
export async function nodesOf(context: Context, request: string): Promise<readonly string[]> {
  const found = await context.tree.get(paths.request(request)).catch(undefinedWhenMissing);
  return found === undefined ? [] : decodeRequest(request, found.data).nodes;
}

/** Ends the hold of a lease on a node, if there is one. */
export async function giveBack(context: Context, lease: string, id: string): Promise<void> {
  const { tree } = context;
  const parent = paths.nodeLock(id);
  for (const name of await tree.children(parent).catch(emptyWhenMissing)) {
    const path = `${parent}/${name}`;
    const found = await tree.get(path).catch(undefinedWhenMissing);
    if (found === undefined || Buffer.from(found.data).toString() !== leaseRequestor(lease)) continue;
    await markUsed(context, id, path);
  }
}

/** `used` and the end of the contender in one commit; unlocked, the node is then deleted like any other. */
async function markUsed(context: Context, id: string, contender: string): Promise<void> {
  const entry = context.view.nodes.byId.get(id);
  if (entry === undefined) return;
  const held = { parent: paths.nodeLock(id), contender, epoch: context.tree.session().epoch };
  const node = heldNode(context, held, id, entry.record, entry.version);
  await node.write({ state: "used" }, (set) => [set, { op: "delete", path: contender }]);
}

/** Someone else has the lock of a node that the lease is to hold. */
export class Busy extends NodeyardError {
  constructor(node: string, lease: string) {
    super("launcher.lease_node_busy", `node ${node} of lease ${lease} is locked by someone else`);
  }
}

function emptyWhenMissing(error: unknown): readonly string[] {
  if (error instanceof TreeError && error.code === "tree.no_node") return [];
  throw error;
}

export function undefinedWhenMissing(error: unknown): undefined {
  if (error instanceof TreeError && error.code === "tree.no_node") return undefined;
  throw error;
}
