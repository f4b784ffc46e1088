import type { CheckOp, CreateOp, DeleteOp, SetOp } from "../contract.ts";
import type { AccessEntry } from "./access.ts";

/**
 * What clients of the wire may ask for beyond the `Tree` contract: data that is null rather than empty, and access
 * lists. Every operation of the contract is one of these.
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
  /** The aversion the znode must have; absent: any. */
  readonly version?: number;
}
