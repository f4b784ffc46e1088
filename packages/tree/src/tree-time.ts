import type { Clock } from "@nodeyard/runtime";
import type { Tree } from "./contract.ts";

/** Tree time now, in milliseconds: what the servers of the tree call now, as far as our own writes have shown. */
export function treeNow({ clock, tree }: { readonly clock: Clock; readonly tree: Tree }): number {
  return clock.now() + tree.clockOffset();
}

/** Tree time now, in seconds, as records hold it. */
export function treeSeconds(handles: { readonly clock: Clock; readonly tree: Tree }): number {
  return treeNow(handles) / 1000;
}
