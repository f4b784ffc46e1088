import { mayAct, withRoot } from "@nodeyard/coordination";
import { changeRequest, decodeRequest, encodeRequest, paths, type RequestRecord } from "@nodeyard/model";
import { FenceLost, type HeldLock, isRefused, type OpResult, orUndefined, treeSeconds } from "@nodeyard/tree";
import type { ServingPool } from "../handles.ts";
import { type HeldRequest, heldRequest, type RecordHandles } from "../held-records.ts";
import type { RequestHandles } from "../nodes/handles.ts";

/** "busy": someone else has the lock. "changed": it is no longer what the plan was made for. "gone": deleted. */
type NotHeld = "busy" | "changed" | "gone";

/**
 * Takes a request's lock and, in the same commit where that is safe, writes `pending`: one round trip for a request that was never
 * locked before (docs/contract/locks.md, "First by construction"). When it rejects, the lock is released or goes with its session.
 * "busy" also means that this process may not act now.
 */
export async function lockAndAccept(
  context: RequestHandles,
  pool: ServingPool,
  id: string,
): Promise<HeldRequest | NotHeld> {
  const entry = context.view.requests.byId.get(id);
  if (entry === undefined) return "gone";
  if (entry.record.state !== "requested") return "changed";
  const pending = changeRequest(entry.record, { state: "pending" }, treeSeconds(context));
  const locked = await lockFresh(context, id, [
    { op: "set", path: paths.request(id), data: encodeRequest(pending), version: entry.version },
  ]);
  // It was locked before: by a launcher that put it back or declined, or by Zuul when it changed the priority.
  if (locked === "exists") {
    const request = await lockRequest(context, id);
    if (typeof request === "string") return request;
    if (!isOpen(request.record, entry.record)) {
      await request.held.release();
      return "changed";
    }
    try {
      await request.write({ state: "pending" }, (set) => {
        // A write that breaks on its way is made again for as long as the connection breaks: the pool may have left the registry by then.
        if (context.pools.get(pool.key) !== pool)
          throw new FenceLost(`request ${id}: pool ${pool.key} is not served any more`);
        return [request.held.fence, set];
      });
    } catch (error) {
      await request.held.release();
      throw error;
    }
    return request;
  }
  if (typeof locked === "string") return locked;
  return heldRequest(
    context,
    locked.held,
    id,
    pending,
    (locked.results[0] as Extract<OpResult, { op: "set" }>).stat.version,
  );
}

/**
 * Takes a request's lock, whether or not it has been locked before. The record is the view's, since the first write checks its
 * version; `fresh` reads it under the lock, for work that does other things first.
 */
export async function lockRequest(
  context: RecordHandles,
  id: string,
  fresh = false,
): Promise<HeldRequest | NotHeld> {
  let held = await lockExisting(context, id);
  if (held === "gone") {
    const made = await lockFresh(context, id, [{ op: "check", path: paths.request(id) }]);
    // `lockFresh` with a check of the request's path creates no lock parent for a request that is gone.
    if (made === "gone" || made === "changed" || made === "busy") return made;
    held = made === "exists" ? await lockExisting(context, id) : made.held;
  }
  // The lock parent came and went between two calls; the plan is made anew.
  if (held === "gone") return "busy";
  if (held === "busy") return held;
  const entry = context.view.requests.byId.get(id);
  if (entry !== undefined && !fresh) return heldRequest(context, held, id, entry.record, entry.version);
  try {
    // Not in the view, or not trusted to be as new as the lock.
    const found = await orUndefined(context.tree.get(paths.request(id)));
    if (found !== undefined)
      return heldRequest(context, held, id, decodeRequest(id, found.data), found.stat.version);
  } catch (error) {
    await held.release();
    throw error;
  }
  await held.release();
  return "gone";
}

/**
 * Each try of a lock checks again whether this process may take it, because the connection may have been lost since the last try. An
 * operation that is queued while the connection is down may run in the next session, in which no pool is registered yet.
 */
async function lockExisting(context: RecordHandles, id: string): Promise<HeldLock | "busy" | "gone"> {
  return mayAct(context) ? context.fence.lockExisting(paths.requestLock(id)) : "busy";
}

async function lockFresh(
  context: RecordHandles,
  id: string,
  more: Parameters<RecordHandles["fence"]["lockFresh"]>[1],
): Promise<Awaited<ReturnType<RecordHandles["fence"]["lockFresh"]>> | NotHeld> {
  try {
    return await withRoot(context.tree, paths.requestsLock, async () =>
      mayAct(context) ? context.fence.lockFresh(paths.requestLock(id), more) : "busy",
    );
  } catch (error) {
    if (isRefused(error, "tree.no_node", paths.request(id))) return "gone";
    if (isRefused(error, "tree.bad_version", paths.request(id))) return "changed";
    throw error;
  }
}

/**
 * Points 1 and 2 of docs/contract/launcher.md, "Which pool takes a request", judged again under the lock, and the labels that the
 * plan was made for.
 */
function isOpen(now: RequestRecord, planned: RequestRecord): boolean {
  return (
    now.state === "requested" &&
    now.declinedBy.length === planned.declinedBy.length &&
    now.nodeTypes.length === planned.nodeTypes.length &&
    now.nodeTypes.every((label, index) => label === planned.nodeTypes[index])
  );
}
