import {
  decodeNode,
  type NodeFields,
  type NodeRecord,
  paths,
  RecordError,
  readableNode,
} from "@nodeyard/model";
import { type Tree, TreeError } from "@nodeyard/tree";
import { Count } from "./count.ts";

/** Ids of all node records, read from the tree itself: the view may be behind. */
export async function nodeIds(tree: Tree): Promise<readonly string[]> {
  return tree.children(paths.nodes).catch((error: unknown) => {
    if (error instanceof TreeError && error.code === "tree.no_node") return [];
    throw error;
  });
}

/** What the records of these ids take. All of them are asked for before this returns, so that the reads stay together. */
export async function countRecords(tree: Tree, ids: Iterable<string>): Promise<Count> {
  const records: NodeRecord[] = [];
  const unreadable: Partial<NodeFields>[] = [];
  await Promise.all(
    [...ids].map(async (id) => {
      const found = await tree.get(paths.node(id)).catch(undefinedWhenMissing);
      // A path that never had data is left by a locker that came too late.
      if (found === undefined || (found.data.length === 0 && found.stat.version === 0)) return;
      try {
        records.push(decodeNode(id, found.data));
      } catch (error) {
        if (!(error instanceof RecordError)) throw error;
        unreadable.push(readableNode(found.data));
      }
    }),
  );
  return new Count(records, unreadable);
}

function undefinedWhenMissing(error: unknown): undefined {
  if (!(error instanceof TreeError) || error.code !== "tree.no_node") throw error;
}
