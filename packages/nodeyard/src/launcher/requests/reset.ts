import type { Context } from "../context.ts";
import { lockNode } from "../nodes/node-lock.ts";
import { lockRequest } from "./accept.ts";
import type { Handled } from "./handler.ts";

/**
 * A pending request whose lock can be had has lost its handler: its nodes are taken back, and it is put back for another
 * plan (docs/contract/launcher.md, "Lost requests"). `declined_by` stays.
 */
export async function resetLost(context: Context, id: string): Promise<Handled> {
  const request = await lockRequest(context, id, true);
  if (typeof request === "string") return request === "gone" ? "vanished" : request;
  if (request.record.state !== "pending") {
    await context.fence.release(request.held);
    return "changed";
  }
  try {
    await Promise.all([...context.view.nodes.byRequest.get(id)].map((node) => takeBack(context, id, node)));
    await request.write({ state: "requested", nodes: [] }, (set) => [
      set,
      { op: "delete", path: request.held.contender },
    ]);
  } catch (error) {
    await context.fence.release(request.held);
    throw error;
  }
  context.log.info({ request: id }, "put back a request that had lost its launcher");
  context.journal.write({ event: "request.reset", request: id, facts: {} });
  return "replan";
}

/** Never waits for a node's lock: a locked node is someone's, and is looked at again when it is unlocked. */
async function takeBack(context: Context, request: string, id: string): Promise<void> {
  const entry = context.view.nodes.byId.get(id);
  if (entry === undefined || entry.contenders.length > 0) return;
  const node = await lockNode(context, id);
  if (typeof node === "string") return;
  const { state, allocatedTo } = node.record;
  if (allocatedTo !== request) return context.fence.release(node.held);
  const patch = state === "init" ? { state: "deleting" as const, allocatedTo: null } : { allocatedTo: null };
  await node
    .write(patch, (set) => [set, { op: "delete", path: node.held.contender }])
    .catch(() => context.fence.release(node.held));
}
