import type { Stat } from "../contract.ts";

/** A znode as a store holds it. Times are milliseconds of the tree's own clock. */
export interface ZnodeRow {
  readonly path: string;
  readonly data: Uint8Array;
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
}

/** A znode in memory. */
export interface Znode {
  data: Uint8Array;
  czxid: bigint;
  mzxid: bigint;
  pzxid: bigint;
  ctime: number;
  mtime: number;
  version: number;
  /** Children ever created: what sequence numbers are taken from. */
  created: number;
  owner: bigint;
  readonly children: Set<string>;
}

export function newZnode(data: Uint8Array, zxid: bigint, now: number, owner: bigint): Znode {
  return {
    data,
    czxid: zxid,
    mzxid: zxid,
    pzxid: zxid,
    ctime: now,
    mtime: now,
    version: 0,
    created: 0,
    owner,
    children: new Set(),
  };
}

export function fromRow(row: ZnodeRow): Znode {
  const { data, czxid, mzxid, pzxid, ctime, mtime, version, cversion, ephemeralOwner } = row;
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
    owner,
    children: new Set(),
  };
}

export function toRow(path: string, node: Znode): ZnodeRow {
  const { data, czxid, mzxid, pzxid, ctime, mtime, version, created, owner } = node;
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
    aversion: 0,
    ephemeralOwner: owner,
  };
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
    aversion: 0,
    ephemeralOwner: node.owner,
    dataLength: node.data.length,
    numChildren,
  };
}
