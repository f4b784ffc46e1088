import { paths } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { FenceLost } from "../../coordination/index.ts";
import type { Context } from "../context.ts";
import { lockNode } from "./node-lock.ts";

/** Frees a ready node whose request is gone. True when nothing is left to do. */
export async function deallocateNode(context: Context, id: string): Promise<boolean> {
  const node = await lockNode(context, id);
  if (node === "gone") return true;
  if (node === "busy") return false;
  try {
    const { state, allocatedTo } = node.record;
    const missing =
      allocatedTo !== null && (await context.tree.stat(paths.request(allocatedTo))) === undefined;
    // What nobody holds is often given back by its own user meanwhile: then there is something else to do with it.
    const moved = (context.view.nodes.byId.get(id)?.version ?? 0) > node.version;
    if (state !== "ready" || !missing || moved) await context.fence.release(node.held);
    else await node.write({ allocatedTo: null }, (set) => [set, { op: "delete", path: node.held.contender }]);
    return true;
  } catch (error) {
    const facts = { node: id, error: messageOf(error) };
    if (error instanceof FenceLost)
      context.log.debug(facts, "a node that was being freed was changed by others");
    else context.log.warn(facts, "freeing a node failed; it is tried again");
    await context.fence.release(node.held).catch(() => {});
    return false;
  }
}
