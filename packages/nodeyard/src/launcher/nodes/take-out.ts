import type { Context } from "../context.ts";
import { lockNode } from "./node-lock.ts";

/** Sends a ready node that nobody has been given to its deletion; one that is taken meanwhile is left alone. */
export async function takeOut(context: Context, id: string, why: string): Promise<void> {
  const node = await lockNode(context, id);
  if (typeof node === "string") return;
  const { state, allocatedTo } = node.record;
  if (state !== "ready" || allocatedTo !== null) return context.fence.release(node.held);
  context.log.info({ node: id, host: node.record.hostname, why }, "deletes a node");
  await node
    .write({ state: "deleting" }, (set) => [set, { op: "delete", path: node.held.contender }])
    .catch(() => context.fence.release(node.held));
}
