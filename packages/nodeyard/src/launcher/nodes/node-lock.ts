import { decodeNode, paths } from "@nodeyard/model";
import { CommitFailed, TreeError } from "@nodeyard/tree";
import type { Held } from "../../coordination/index.ts";
import type { Context } from "../context.ts";
import { type HeldNode, heldNode } from "../fence/records.ts";

/**
 * Takes a node's lock without waiting, never making the node's own path. The record is the view's: the first write checks its
 * version, and reads it anew when someone was quicker.
 */
export async function lockNode(context: Context, id: string): Promise<HeldNode | "busy" | "gone"> {
  const held = await lockParent(context, id);
  if (typeof held === "string") return held;
  const entry = context.view.nodes.byId.get(id);
  if (entry !== undefined) return heldNode(context, held, id, entry.record, entry.version);
  try {
    const found = await context.tree.get(paths.node(id));
    return heldNode(context, held, id, decodeNode(id, found.data), found.stat.version);
  } catch (error) {
    await context.fence.release(held);
    if (error instanceof TreeError && error.code === "tree.no_node") return "gone";
    throw error;
  }
}

async function lockParent(context: Context, id: string): Promise<Held | "busy" | "gone"> {
  const parent = paths.nodeLock(id);
  const held = await context.fence.lockExisting(parent);
  if (held !== "gone") return held;
  try {
    const made = await context.fence.lockFresh(parent, []);
    return made === "exists" ? await context.fence.lockExisting(parent) : made.held;
  } catch (error) {
    if (error instanceof CommitFailed && error.reason.code === "tree.no_node") return "gone";
    throw error;
  }
}
