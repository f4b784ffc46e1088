import type { NodeUse } from "@nodeyard/driver";
import { decodeNode, paths, RecordError } from "@nodeyard/model";
import { type Tree, TreeError } from "@nodeyard/tree";

/** States of a node that somebody has, or may look at. */
const IN_USE: ReadonlySet<string> = new Set(["in-use", "used", "hold", "deleting"]);

/** By the tree itself, since the view may be behind; whoever reads several synchronizes first. One read. */
export async function nodeUse(tree: Tree, id: string): Promise<NodeUse> {
  try {
    const { state, allocatedTo } = decodeNode(id, (await tree.get(paths.node(id))).data);
    if (state === "ready") return allocatedTo === null ? "unused" : "between";
    return IN_USE.has(state) ? "used" : "between";
  } catch (error) {
    // Somebody may use it; the other nodes of the provider are reported all the same.
    if (error instanceof RecordError) return "used";
    if (!(error instanceof TreeError) || error.code !== "tree.no_node") throw error;
    return "between";
  }
}
