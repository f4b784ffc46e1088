import { CommitFailed, type Tree, TreeError } from "@nodeyard/tree";

/**
 * Runs `work`, and once more after making `root` when that was missing: the roots of the contract are made by whoever first
 * needs them, and never removed (spec zookeeper.md 1.1).
 */
export async function withRoot<T>(tree: Tree, root: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  await makePath(tree, root);
  return work();
}

/** Creates every part of a path that is missing. */
export async function makePath(tree: Tree, path: string): Promise<void> {
  let at = "";
  for (const part of path.split("/").slice(1)) {
    at += `/${part}`;
    await tree.create(at).catch((error: unknown) => {
      if (!(error instanceof TreeError) || error.code !== "tree.node_exists") throw error;
    });
  }
}

/** The first operation is the one that needs the root; any other that misses something means something else. */
function isMissing(error: unknown): boolean {
  if (error instanceof CommitFailed) return error.index === 0 && error.reason.code === "tree.no_node";
  return error instanceof TreeError && error.code === "tree.no_node";
}
