export { TreeCore } from "./core.ts";
export { type LeavingTree, openLeaving, putBack } from "./edge/moved-tree.ts";
export { restoreEmbeddedTree } from "./edge/restore.ts";
export { socketPath } from "./edge/state-folder.ts";
export { StoreRefused } from "./errors.ts";
export { type EmbeddedOptions, type EmbeddedTree, openEmbeddedTree } from "./open.ts";
