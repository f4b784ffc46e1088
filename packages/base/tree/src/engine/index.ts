export {
  type AccessEntry,
  type AccessList,
  type Caller,
  entriesOf,
  type Identity,
  Permission,
  permits,
  TRUSTED,
} from "./access.ts";
export { type Applied, DataTree, type TreeEvent } from "./data-tree.ts";
export type { TreeOp } from "./operations.ts";
export { checkPath, parentOf } from "./paths.ts";
export type { ZnodeRow } from "./znode.ts";
