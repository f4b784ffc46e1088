import type { Stat } from "../contract.ts";
import type { AccessEntry, AccessList } from "./access.ts";

/** A znode in the form in which a store keeps it. Times are milliseconds of the tree's own clock. */
export interface ZnodeRow {
  readonly path: string;
  /** Wire clients can write null, and distinguish it from empty data. */
  readonly data: Uint8Array | null;
  /** Zxid of the creation. */
  readonly czxid: bigint;
  /** Zxid of the last change of the data. */
  readonly mzxid: bigint;
  /** Zxid of the last creation or deletion of a child. */
  readonly pzxid: bigint;
  readonly ctime: number;
  readonly mtime: number;
  /** Number of changes of the data since the creation. */
  readonly version: number;
  /** Number of children ever created. The cversion that clients see is computed from it (`statOf`). */
  readonly cversion: number;
  /** Number of changes of the access list. */
  readonly aversion: number;
  /** Session that owns the znode; 0n for a persistent znode. */
  readonly ephemeralOwner: bigint;
  /** The access list as JSON, `[[perms, scheme, id], ...]`; null: every client may do everything. */
  readonly acl: string | null;
}

/** The fields that memory and disk have in the same form. */
type Kept = Omit<ZnodeRow, "path" | "acl">;

/** A znode in memory: the mutable fields of its row, its access list and its children. */
export type Znode = { -readonly [Field in keyof Kept]: Kept[Field] } & {
  acl: AccessList;
  readonly children: Set<string>;
};

/** A znode at its creation. `now` in ms; `owner` is the session of an ephemeral znode, else 0n. */
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
    cversion: 0,
    aversion: 0,
    ephemeralOwner: owner,
    acl,
    children: new Set(),
  };
}

/** The znode of a stored row, without children, which `load` adds. */
export function fromRow({ path: _, acl, ...kept }: ZnodeRow): Znode {
  return { ...kept, acl: acl === null ? undefined : parseAcl(acl), children: new Set() };
}

/** Lists the fields by name. A rest pattern would cost twenty times as much, and each change makes two rows. */
export function toRow(path: string, node: Znode): ZnodeRow {
  const { data, czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner } = node;
  const acl = node.acl && JSON.stringify(node.acl.map(({ perms, scheme, id }) => [perms, scheme, id]));
  return {
    path,
    data,
    czxid,
    mzxid,
    pzxid,
    ctime,
    mtime,
    version,
    cversion,
    aversion,
    ephemeralOwner,
    acl: acl ?? null,
  };
}

/** Only rows that `toRow` wrote are read, so nothing is checked. */
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
    cversion: 2 * node.cversion - numChildren,
    aversion: node.aversion,
    ephemeralOwner: node.ephemeralOwner,
    dataLength: node.data?.length ?? 0,
    numChildren,
  };
}
