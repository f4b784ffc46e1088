import type { CheckOp, CreateOp, DeleteOp, SetOp } from "../contract.ts";
import type { AccessEntry } from "./access.ts";

/**
 * The operations of the wire protocol. They extend the operations of the `Tree` contract by data that is null and by access
 * lists.
 */
export type TreeOp =
  | (Omit<CreateOp, "data"> & { readonly data?: Uint8Array | null; readonly acl?: readonly AccessEntry[] })
  | (Omit<SetOp, "data"> & { readonly data: Uint8Array | null })
  | DeleteOp
  | CheckOp
  | SetAclOp;

export interface SetAclOp {
  readonly op: "setAcl";
  readonly path: string;
  readonly acl: readonly AccessEntry[];
  /** The aversion that the znode must have; default: any. */
  readonly version?: number;
}
