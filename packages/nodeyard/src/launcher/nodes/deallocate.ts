import { decodeRequest, paths } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { TreeError } from "@nodeyard/tree";
import { FenceLost } from "../../coordination/index.ts";
import type { Context } from "../context.ts";
import { lockNode } from "./node-lock.ts";

/** Frees a ready node whose request is gone, or was put back without it. True when nothing is left to do. */
export async function deallocateNode(context: Context, id: string): Promise<boolean> {
  const node = await lockNode(context, id);
  if (node === "gone") return true;
  if (node === "busy") return false;
  try {
    const { state, allocatedTo } = node.record;
    const forgotten = allocatedTo !== null && (await isForgotten(context, allocatedTo));
    // What nobody holds is often given back by its own user meanwhile: then there is something else to do with it.
    const moved = (context.view.nodes.byId.get(id)?.version ?? 0) > node.version;
    if (state !== "ready" || !forgotten || moved) await context.fence.release(node.held);
    else await node.write({ allocatedTo: null }, (set) => [set, { op: "delete", path: node.held.contender }]);
    return true;
  } catch (error) {
    const facts = { node: id, error: messageOf(error) };
    if (error instanceof FenceLost)
      context.log.debug(facts, "a node that was being freed was changed by others");
    else context.log.warn(facts, "cannot free a node; will retry");
    await context.fence.release(node.held).catch(() => {});
    return false;
  }
}

/** Nobody hands nodes to a request that is `requested`: it becomes `pending` first. */
async function isForgotten({ tree }: Context, request: string): Promise<boolean> {
  try {
    const { data } = await tree.get(paths.request(request));
    return decodeRequest(request, data).state === "requested";
  } catch (error) {
    if (error instanceof TreeError && error.code === "tree.no_node") return true;
    throw error;
  }
}
