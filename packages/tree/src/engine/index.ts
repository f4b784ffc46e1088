export { type Applied, DataTree, type TreeEvent } from "./data-tree.ts";
export { checkPath, parentOf } from "./paths.ts";
export type { ZnodeRow } from "./znode.ts";
