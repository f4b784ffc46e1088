import type { Clock } from "@nodeyard/runtime";
import type { Tree } from "./contract.ts";
import { CommitFailed, NodeExists, TreeError } from "./errors.ts";

/** Creates the missing znodes of a path, persistent and without data. */
export async function ensurePath(tree: Pick<Tree, "create">, path: string): Promise<void> {
  let at = "";
  for (const part of path.split("/").slice(1)) {
    at += `/${part}`;
    await tree.create(at).catch(ignoreExisting);
  }
}

/** Tree time now in milliseconds: the clock of the tree's servers, as far as this process's writes have measured it. */
export function treeNow({ clock, tree }: { readonly clock: Clock; readonly tree: Tree }): number {
  return clock.now() + tree.clockOffset();
}

/** Tree time now in seconds, the unit of times in records. */
export function treeSeconds(handles: { readonly clock: Clock; readonly tree: Tree }): number {
  return treeNow(handles) / 1000;
}

/** Undefined when the znode does not exist; other errors are passed on. */
export async function orUndefined<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof TreeError && error.code === "tree.no_node") return undefined;
    throw error;
  }
}

/** For `catch`: ignores NodeExists, also within a CommitFailed; other errors are passed on. */
export function ignoreExisting(error: unknown): undefined {
  if (!((error instanceof CommitFailed ? error.reason : error) instanceof NodeExists)) throw error;
}
