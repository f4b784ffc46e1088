import { type Tree, TreeError } from "@nodeyard/tree";
import { RETIRED, slotsFolder } from "./slots.ts";

/**
 * Has a backing node take no more slots: those that it has go on, and when they are gone it goes too. Anyone who sees that it is bad may
 * say so; its owner writes it into the record. Nothing happens when it is gone, or retired already.
 */
export async function retireBacking(tree: Tree, backing: string, why: string): Promise<void> {
  const data = Buffer.from(JSON.stringify({ v: 1, why }));
  try {
    await tree.create(`${slotsFolder(backing)}/${RETIRED}`, data);
  } catch (error) {
    if (!(error instanceof TreeError)) throw error;
    if (error.code !== "tree.node_exists" && error.code !== "tree.no_node") throw error;
  }
}
