import { CommitFailed, ensurePath, type Tree, TreeError } from "@nodeyard/tree";

/**
 * Runs `work`, and once more after making `root` when that was missing: the roots of the contract are made by whoever first
 * needs them, and never removed (docs/contract/tree.md, "Paths of the contract").
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

/** The first operation is the one that needs the root; any other that misses something means something else. */
function isMissing(error: unknown): boolean {
  if (error instanceof CommitFailed) return error.index === 0 && error.reason.code === "tree.no_node";
  return error instanceof TreeError && error.code === "tree.no_node";
}
