import { OPEN_ACL, wire } from "@nodeyard/zookeeper";
import type { CreateOp, Op } from "../contract.ts";

const { CreateFlag, OpCode } = wire;
const NOTHING = new Uint8Array(0);
const ANY_VERSION = -1;

type CreateRequest = wire.CreateRequest & { readonly type: typeof OpCode.create2 };

/** An op as a request of its own; a check is only known inside a multi. */
export type SingleRequest = CreateRequest | wire.SetDataRequest | wire.DeleteRequest;

export function requestOf(op: Exclude<Op, { op: "check" }>): SingleRequest {
  switch (op.op) {
    case "create":
      return {
        type: OpCode.create2,
        path: op.path,
        data: op.data ?? NOTHING,
        acl: OPEN_ACL,
        flags: flagsOf(op),
      };
    case "set":
      return { type: OpCode.setData, path: op.path, data: op.data, version: op.version ?? ANY_VERSION };
    case "delete":
      return { type: OpCode.delete, path: op.path, version: op.version ?? ANY_VERSION };
  }
}

/** All ops in one request. Servers do not know create2 inside a multi, so creates are answered without their Stat. */
export function multiRequest(ops: readonly Op[]): wire.MultiRequest {
  return { type: OpCode.multi, ops: ops.map(multiOp) };
}

function multiOp(op: Op): wire.MultiOpRequest {
  if (op.op === "check") return { type: OpCode.check, path: op.path, version: op.version ?? ANY_VERSION };
  if (op.op !== "create") return requestOf(op);
  return {
    type: OpCode.create,
    path: op.path,
    data: op.data ?? NOTHING,
    acl: OPEN_ACL,
    flags: flagsOf(op),
  };
}

function flagsOf(op: CreateOp): number {
  return (
    (op.ephemeral ? CreateFlag.ephemeral : CreateFlag.persistent) |
    (op.sequential ? CreateFlag.persistentSequential : CreateFlag.persistent)
  );
}
