import { ensurePath, isRefused, type Tree } from "@nodeyard/tree";

/**
 * Runs `work`; if `root` is missing, creates it and runs `work` once more. The process that first needs a root of the contract creates
 * it, and no process removes one (docs/contract/tree.md, "Paths of the contract").
 */
export async function withRoot<T>(tree: Tree, root: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isRefused(error, "tree.no_node", root)) throw error;
  }
  await ensurePath(tree, root);
  return work();
}
