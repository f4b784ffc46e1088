import type { Stat } from "../contract.ts";
import type { AccessEntry, AccessList } from "./access.ts";

/** A znode as a store holds it. Times are milliseconds of the tree's own clock. */
export interface ZnodeRow {
  readonly path: string;
  /** Null is what clients of the wire may write; it is not the same to them as empty. */
  readonly data: Uint8Array | null;
  readonly czxid: bigint;
  readonly mzxid: bigint;
  readonly pzxid: bigint;
  readonly ctime: number;
  readonly mtime: number;
  readonly version: number;
  /** Children ever created. What clients see as cversion is computed from it. */
  readonly cversion: number;
  readonly aversion: number;
  /** Session that owns the znode; 0n for a durable one. */
  readonly ephemeralOwner: bigint;
  /** The access list as JSON, `[[perms, scheme, id], ...]`; null: everybody may do everything. */
  readonly acl: string | null;
}

/** A znode in memory. */
export interface Znode {
  data: Uint8Array | null;
  czxid: bigint;
  mzxid: bigint;
  pzxid: bigint;
  ctime: number;
  mtime: number;
  version: number;
  /** Children ever created: what sequence numbers are taken from. */
  created: number;
  /** Changes of the access list. */
  aversion: number;
  acl: AccessList;
  owner: bigint;
  readonly children: Set<string>;
}

export function newZnode(
  data: Uint8Array | null,
  zxid: bigint,
  now: number,
  owner: bigint,
  acl: AccessList,
): Znode {
  return {
    data,
    czxid: zxid,
    mzxid: zxid,
    pzxid: zxid,
    ctime: now,
    mtime: now,
    version: 0,
    created: 0,
    aversion: 0,
    acl,
    owner,
    children: new Set(),
  };
}

export function fromRow(row: ZnodeRow): Znode {
  const { data, czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner } = row;
  const owner = ephemeralOwner;
  return {
    data,
    czxid,
    mzxid,
    pzxid,
    ctime,
    mtime,
    version,
    created: cversion,
    aversion,
    acl: row.acl === null ? undefined : parseAcl(row.acl),
    owner,
    children: new Set(),
  };
}

export function toRow(path: string, node: Znode): ZnodeRow {
  const { data, czxid, mzxid, pzxid, ctime, mtime, version, created, aversion, acl, owner } = node;
  return {
    path,
    data,
    czxid,
    mzxid,
    pzxid,
    ctime,
    mtime,
    version,
    cversion: created,
    aversion,
    ephemeralOwner: owner,
    acl: acl === undefined ? null : JSON.stringify(acl.map(({ perms, scheme, id }) => [perms, scheme, id])),
  };
}

function parseAcl(text: string): AccessEntry[] {
  const entries = JSON.parse(text) as [number, string, string][];
  return entries.map(([perms, scheme, id]) => ({ perms, scheme, id }));
}

/** ZooKeeper's cversion counts creations and deletions of children: 2 * created - present. */
export function statOf(node: Znode): Stat {
  const numChildren = node.children.size;
  return {
    czxid: node.czxid,
    mzxid: node.mzxid,
    pzxid: node.pzxid,
    ctime: node.ctime,
    mtime: node.mtime,
    version: node.version,
    cversion: 2 * node.created - numChildren,
    aversion: node.aversion,
    ephemeralOwner: node.owner,
    dataLength: node.data?.length ?? 0,
    numChildren,
  };
}
