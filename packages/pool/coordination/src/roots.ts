import { CommitFailed, ensurePath, type Tree, TreeError } from "@nodeyard/tree";

/**
 * Runs `work`; if `root` is missing, creates it and runs `work` once more. The process that first needs a root of the contract creates
 * it, and no process removes one (docs/contract/tree.md, "Paths of the contract").
 */
export async function withRoot<T>(tree: Tree, root: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  await ensurePath(tree, root);
  return work();
}

/** Whether the first operation failed for the missing root. A missing znode of a later operation has another cause. */
function isMissing(error: unknown): boolean {
  if (error instanceof CommitFailed) return error.index === 0 && error.reason.code === "tree.no_node";
  return error instanceof TreeError && error.code === "tree.no_node";
}
