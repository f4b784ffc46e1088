import { BadArguments } from "../errors.ts";
import { checkPath } from "../paths.ts";
import type { CreateOptions, MultiOp } from "../types.ts";
import type { Acl, CreateRequest, CreateTtlRequest, MultiOpRequest } from "../wire/messages.ts";
import { CreateFlag, OpCode } from "../wire/op-code.ts";

/** Bits of an access list's `perms`. */
export const Permission = { read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 } as const;

/** ZooKeeper's `world:anyone` with all permissions: every client may do everything. */
export const OPEN_ACL: readonly Acl[] = [{ perms: Permission.all, scheme: "world", id: "anyone" }];

const NO_DATA: Uint8Array = Buffer.alloc(0);
/** On the wire: the version does not matter. */
const ANY_VERSION = -1;
const NO_OPTIONS: CreateOptions = {};
/** The server takes a TTL as 40 bits of milliseconds (the rest of the owner field marks the znode as one with a TTL). */
const LONGEST_TTL = 0xff_ffff_ffff;

/** The request for a create. Throws BadArguments for a path or a combination of modes that every server refuses. */
export function createRequest(
  path: string,
  data: Uint8Array = NO_DATA,
  options: Omit<CreateOptions, "signal"> = NO_OPTIONS,
): (CreateRequest & { readonly type: 15 | 19 }) | CreateTtlRequest {
  const sequential = options.sequential === true;
  checkPath(path, sequential);
  const acl = options.acl ?? OPEN_ACL;
  if (options.container === true) {
    if (sequential || options.ephemeral || options.ttlMs !== undefined) mixed(path);
    return { type: OpCode.createContainer, path, data, acl, flags: CreateFlag.container };
  }
  if (options.ttlMs !== undefined) {
    if (options.ephemeral) mixed(path);
    return ttlRequest(path, data, acl, sequential, options.ttlMs);
  }
  let flags: number = sequential ? CreateFlag.persistentSequential : CreateFlag.persistent;
  if (options.ephemeral === true) flags |= CreateFlag.ephemeral;
  return { type: OpCode.create2, path, data, acl, flags };
}

/** Throws BadArguments for a time that the server cannot store. */
function ttlRequest(
  path: string,
  data: Uint8Array,
  acl: readonly Acl[],
  sequential: boolean,
  ttl: number,
): CreateTtlRequest {
  if (!Number.isInteger(ttl) || ttl < 1 || ttl > LONGEST_TTL) {
    throw new BadArguments(`ttlMs is ${ttl}; it must be whole milliseconds from 1 to ${LONGEST_TTL}`, {
      op: "create",
      path,
    });
  }
  const flags = sequential ? CreateFlag.persistentSequentialTtl : CreateFlag.persistentTtl;
  return { type: OpCode.createTtl, path, data, acl, flags, ttl };
}

/** Modes that no request can express together. */
function mixed(path: string): never {
  throw new BadArguments("container, ttlMs, ephemeral do not go together, nor container and sequential", {
    op: "create",
    path,
  });
}

/** The request for one operation of a multi. */
export function multiOpRequest(op: MultiOp): MultiOpRequest {
  if (op.op === "create") return createRequest(op.path, op.data, op);
  checkPath(op.path);
  switch (op.op) {
    case "set":
      return { type: OpCode.setData, path: op.path, data: op.data, version: versionOf(op) };
    case "delete":
      return { type: OpCode.delete, path: op.path, version: versionOf(op) };
    case "check":
      return { type: OpCode.check, path: op.path, version: versionOf(op) };
  }
}

/** The protocol's version number: -1 stands for any. */
export function versionOf(options: { readonly version?: number } | undefined): number {
  return options?.version ?? ANY_VERSION;
}
