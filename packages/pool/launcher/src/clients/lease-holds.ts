import {
  decodeNode,
  encodeLease,
  type Lease,
  leaseRequestor,
  type NodeRecord,
  paths,
  type Returned,
  withReturned,
} from "@nodeyard/model";
import { readRequest } from "@nodeyard/operations";
import { hexId, NodeyardError } from "@nodeyard/runtime";
import { heldLock, type Op, orUndefined } from "@nodeyard/tree";
import type { OwnEntry } from "@nodeyard/view";
import { holderOf } from "@nodeyard/zookeeper";
import { type HeldNode, heldNode, type RecordHandles } from "../held-records.ts";
import { lockNode } from "../nodes/node-lock.ts";

/**
 * Sets a node `in-use` under a contender that outlives every session; repeated, it finds the contender of the first call. Returns
 * its record; undefined when the node is gone or belongs to another request. The durable contender is created behind our session's contender, and the
 * node is set in use only when no other contender stands between the two, since that client would get the lock next. Each commit
 * checks that the lease still exists: the process that ends a lease removes only the holds that exist by then. Throws Busy while
 * another client holds the lock or stands in line; the caller tries again later.
 */
export async function holdNode(
  context: RecordHandles,
  lease: Lease,
  entry: OwnEntry,
  request: string,
  id: string,
): Promise<NodeRecord | undefined> {
  const parent = paths.nodeLock(id);
  const stands: Op = { op: "check", path: entry.path, version: entry.version };
  const names = (await orUndefined(context.tree.children(parent))) ?? [];
  // A hold of an earlier try, by this launcher or another.
  for (const name of names) {
    const path = `${parent}/${name}`;
    const found = await orUndefined(context.tree.get(path));
    if (found === undefined || Buffer.from(found.data).toString() !== leaseRequestor(lease.id)) continue;
    // It stands in line behind a client that was quicker.
    if (holderOf(names) !== name) throw new Busy(id, lease.id);
    return use(context, id, path, request, stands);
  }
  const node = await lockNode(context, id);
  if (node === "gone") return undefined;
  if (node === "busy") throw new Busy(id, lease.id);
  try {
    if (node.record.allocatedTo !== request) return undefined;
    const [, , made] = await context.tree.commit([
      node.held.fence,
      stands,
      {
        op: "create",
        path: `${parent}/${hexId(context.random)}__lock__`,
        data: Buffer.from(leaseRequestor(lease.id)),
        sequential: true,
      },
    ] as const);
    const own = node.held.contender.slice(parent.length + 1);
    const behind = (await context.tree.children(parent)).filter((name) => name !== own);
    if (holderOf(behind) === made.path.slice(parent.length + 1))
      return await use(context, id, made.path, request, stands);
    // Left in line it would get the lock some time later, for a lease that may be over.
    await orUndefined(context.tree.delete(made.path));
    throw new Busy(id, lease.id);
  } finally {
    await node.held.release();
  }
}

/** The node is in use from here on; undefined when it is no longer for the request, whose contender then goes. */
async function use(
  context: RecordHandles,
  id: string,
  contender: string,
  request: string,
  stands: Op,
): Promise<NodeRecord | undefined> {
  const node = await heldFor(context, id, contender);
  if (node?.record.allocatedTo === request && node.record.state === "in-use") return node.record;
  if (node?.record.allocatedTo !== request || node.record.state !== "ready") {
    await orUndefined(context.tree.delete(contender));
    return undefined;
  }
  await node.write({ state: "in-use" }, (set) => [{ op: "check", path: contender }, stands, set]);
  return node.record;
}

/** The record as it is now, held by a contender that outlives sessions. */
async function heldFor(context: RecordHandles, id: string, contender: string): Promise<HeldNode | undefined> {
  const found = await orUndefined(context.tree.get(paths.node(id)));
  if (found === undefined || found.data.length === 0) return undefined;
  const { tree } = context;
  const held = heldLock(tree, paths.nodeLock(id), contender, tree.session().epoch, true);
  return heldNode(context, held, id, decodeNode(id, found.data), found.stat.version);
}

/**
 * Takes back the nodes of a lease's request, then deletes it: nodes that are not in the lease yet are found only through the request, as it is
 * now: the view may still show it as it was before it was fulfilled and its nodes were held.
 */
export async function withdraw(context: RecordHandles, lease: string, request: string): Promise<void> {
  const nodes = (await readRequest(context, request))?.nodes ?? [];
  for (const id of nodes) await giveBack(context, lease, id);
  await orUndefined(context.tree.delete(paths.request(request)));
}

/**
 * Ends a lease that gets no nodes, with the request that it has. Its record stays until it expires or its client releases it, so that the client
 * sees the failure. `why`: where more is known than that all pools declined.
 */
export async function failLease(
  context: RecordHandles,
  lease: Lease,
  entry: OwnEntry,
  why: string | null,
  request: string | undefined,
): Promise<void> {
  const failed: Lease = { ...lease, state: "failed", why };
  await context.tree.commit([
    { op: "set", path: entry.path, data: encodeLease(failed, entry.data), version: entry.version },
    ...(request === undefined ? [] : [{ op: "delete" as const, path: paths.request(request) }]),
  ]);
  const facts = { lease: lease.id, ...(why !== null && { why }), ...jobOf(lease) };
  context.journal.write({ event: "lease.failed", request, facts });
}

/** The job by which people look for the lease when it is gone. */
export function jobOf({ job }: Lease): { readonly job?: string } {
  return job === null ? {} : { job: job.id };
}

/** Ends the hold of a lease on a node, if there is one. `returned`: absent where its client did not give it back. */
export async function giveBack(
  context: RecordHandles,
  lease: string,
  id: string,
  returned?: Returned,
): Promise<void> {
  const { tree } = context;
  const parent = paths.nodeLock(id);
  const names = (await orUndefined(tree.children(parent))) ?? [];
  for (const name of names) {
    const path = `${parent}/${name}`;
    const found = await orUndefined(tree.get(path));
    if (found === undefined || Buffer.from(found.data).toString() !== leaseRequestor(lease)) continue;
    if (holderOf(names) === name) await markUsed(context, id, path, returned);
    // It stood in line and never had the lock: the node is not ours to write.
    else await orUndefined(tree.delete(path));
  }
}

/** `used` and the end of the contender in one commit; unlocked, the node is then deleted like any other. */
async function markUsed(
  context: RecordHandles,
  id: string,
  contender: string,
  returned: Returned | undefined,
): Promise<void> {
  const node = await heldFor(context, id, contender);
  if (node === undefined) return;
  if (node.record.state === "in-use" || node.record.state === "ready")
    await node.writeAndRelease({
      state: "used",
      ...(returned !== undefined && { driverData: withReturned(node.record.driverData, returned) }),
    });
  else await orUndefined(context.tree.delete(contender));
}

/** Someone else has the lock of a node that the lease is to hold. */
export class Busy extends NodeyardError {
  constructor(node: string, lease: string) {
    super("launcher.lease_node_busy", `node ${node} of lease ${lease} is locked by someone else`);
  }
}
