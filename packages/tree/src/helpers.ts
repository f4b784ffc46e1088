import type { Clock } from "@nodeyard/runtime";
import type { Tree } from "./contract.ts";
import { CommitFailed, NodeExists, TreeError } from "./errors.ts";

/** Creates every part of a path that is missing; durable, without data. */
export async function ensurePath(tree: Pick<Tree, "create">, path: string): Promise<void> {
  let at = "";
  for (const part of path.split("/").slice(1)) {
    at += `/${part}`;
    await tree.create(at).catch(ignoreExisting);
  }
}

/** Tree time now, in milliseconds: what the servers of the tree call now, as far as our own writes have shown. */
export function treeNow({ clock, tree }: { readonly clock: Clock; readonly tree: Tree }): number {
  return clock.now() + tree.clockOffset();
}

/** Tree time now, in seconds, as records hold it. */
export function treeSeconds(handles: { readonly clock: Clock; readonly tree: Tree }): number {
  return treeNow(handles) / 1000;
}

/** Undefined when what was asked for does not exist; any other failure is the caller's. */
export async function orUndefined<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof TreeError && error.code === "tree.no_node") return undefined;
    throw error;
  }
}

/** For `catch`: undefined where the tree answered that a znode exists already. Any other error is thrown on. */
export function ignoreExisting(error: unknown): undefined {
  if (!((error instanceof CommitFailed ? error.reason : error) instanceof NodeExists)) throw error;
}
