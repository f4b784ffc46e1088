/**
 * The messages of the ZooKeeper protocol (jute, zookeeper.jute of ZooKeeper 3.9), as plain values. Field names are
 * the protocol's, except that every 64-bit id is a bigint and every time a number of milliseconds.
 */
import type { OpCode } from "./op-code.ts";

/** What a server says of a znode. Zxids order all changes of the tree. */
export interface Stat {
  readonly czxid: bigint;
  readonly mzxid: bigint;
  /** Milliseconds since the epoch, by the server's clock. */
  readonly ctime: number;
  readonly mtime: number;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  /** Session that owns the znode; 0n unless it is ephemeral (containers and TTL znodes carry a marker here). */
  readonly ephemeralOwner: bigint;
  readonly dataLength: number;
  readonly numChildren: number;
  readonly pzxid: bigint;
}

/** One entry of an access list: `perms` is a sum of the bits in `Permission`. */
export interface Acl {
  readonly perms: number;
  readonly scheme: string;
  readonly id: string;
}

export interface ConnectRequest {
  readonly protocolVersion: number;
  readonly lastZxidSeen: bigint;
  readonly timeOut: number;
  readonly sessionId: bigint;
  readonly passwd: Uint8Array;
  readonly readOnly: boolean;
}

export interface ConnectResponse {
  readonly protocolVersion: number;
  /** The negotiated session timeout in milliseconds; 0 or less: the session has expired. */
  readonly timeOut: number;
  readonly sessionId: bigint;
  readonly passwd: Uint8Array;
  readonly readOnly: boolean;
}

export interface RequestHeader {
  readonly xid: number;
  readonly type: number;
}

export interface ReplyHeader {
  readonly xid: number;
  readonly zxid: bigint;
  readonly err: number;
}

export interface WatcherEvent {
  readonly type: number;
  readonly state: number;
  readonly path: string;
}

type Code = typeof OpCode;

export interface CreateRequest {
  readonly type: Code["create"] | Code["create2"] | Code["createContainer"];
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
  readonly flags: number;
}

export interface CreateTtlRequest {
  readonly type: Code["createTtl"];
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
  readonly flags: number;
  /** Milliseconds. */
  readonly ttl: number;
}

export interface DeleteRequest {
  readonly type: Code["delete"];
  readonly path: string;
  readonly version: number;
}

export interface SetDataRequest {
  readonly type: Code["setData"];
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly version: number;
}

export interface CheckRequest {
  readonly type: Code["check"];
  readonly path: string;
  readonly version: number;
}

/** Requests that read one path and may leave a one-shot watch there. */
export interface ReadRequest {
  readonly type: Code["exists"] | Code["getData"] | Code["getChildren"] | Code["getChildren2"];
  readonly path: string;
  readonly watch: boolean;
}

export interface PathRequest {
  readonly type: Code["getAcl"] | Code["sync"] | Code["getAllChildrenNumber"] | Code["getEphemerals"];
  readonly path: string;
}

export interface SetAclRequest {
  readonly type: Code["setAcl"];
  readonly path: string;
  readonly acl: readonly Acl[];
  readonly version: number;
}

export type MultiOpRequest =
  | CreateRequest
  | CreateTtlRequest
  | DeleteRequest
  | SetDataRequest
  | CheckRequest
  | ReadRequest;

/** All of `ops` or none of them. */
export interface MultiRequest {
  readonly type: Code["multi"];
  readonly ops: readonly MultiOpRequest[];
}

/** `ops` are getData and getChildren only. */
export interface MultiReadRequest {
  readonly type: Code["multiRead"];
  readonly ops: readonly MultiOpRequest[];
}

export interface RemoveWatchesRequest {
  readonly type: Code["checkWatches"] | Code["removeWatches"];
  readonly path: string;
  readonly watcherType: number;
}

export interface AddWatchRequest {
  readonly type: Code["addWatch"];
  readonly path: string;
  readonly mode: number;
}

export interface AuthRequest {
  readonly type: Code["auth"];
  readonly scheme: string;
  readonly auth: Uint8Array;
}

export interface SaslRequest {
  readonly type: Code["sasl"];
  readonly token: Uint8Array;
}

export interface SetWatchesRequest {
  readonly type: Code["setWatches"] | Code["setWatches2"];
  readonly relativeZxid: bigint;
  readonly dataWatches: readonly string[];
  readonly existWatches: readonly string[];
  readonly childWatches: readonly string[];
  /** With setWatches2 only. */
  readonly persistentWatches: readonly string[];
  readonly persistentRecursiveWatches: readonly string[];
}

export interface BareRequest {
  readonly type: Code["ping"] | Code["closeSession"] | Code["whoAmI"];
}

/** What a client sends, by its protocol type. Pings, handshakes and authentication have messages of their own. */
export type Request =
  | CreateRequest
  | CreateTtlRequest
  | DeleteRequest
  | SetDataRequest
  | CheckRequest
  | ReadRequest
  | PathRequest
  | SetAclRequest
  | MultiRequest
  | MultiReadRequest
  | RemoveWatchesRequest
  | AddWatchRequest
  | AuthRequest
  | SaslRequest
  | SetWatchesRequest
  | BareRequest;

/** One identity of a connection, as the server answers `whoAmI`. */
export interface ClientInfo {
  readonly authScheme: string;
  readonly user: string;
}

/** Result of one operation of a multi: what its own response holds, or the error that it met. */
export type MultiResult =
  | { readonly type: Code["create"]; readonly path: string }
  | {
      readonly type: Code["create2"] | Code["createContainer"] | Code["createTtl"];
      readonly path: string;
      readonly stat: Stat;
    }
  | { readonly type: Code["delete"] | Code["check"] }
  | { readonly type: Code["setData"]; readonly stat: Stat }
  | { readonly type: Code["getData"]; readonly data: Buffer; readonly stat: Stat }
  | { readonly type: Code["getChildren"]; readonly children: readonly string[] }
  | { readonly type: "error"; readonly err: number };

export interface Empty {
  readonly type?: undefined;
}

type Created = { readonly path: string; readonly stat: Stat };
type Multi = { readonly results: readonly MultiResult[] };

/** The body of a successful reply, by the operation code of its request. */
export interface ResponseBodies {
  1: { readonly path: string };
  15: Created;
  19: Created;
  21: Created;
  2: Empty;
  3: { readonly stat: Stat };
  4: { readonly data: Buffer; readonly stat: Stat };
  5: { readonly stat: Stat };
  6: { readonly acl: readonly Acl[]; readonly stat: Stat };
  7: { readonly stat: Stat };
  8: { readonly children: readonly string[] };
  9: { readonly path: string };
  11: Empty;
  12: { readonly children: readonly string[]; readonly stat: Stat };
  13: Empty;
  14: Multi;
  22: Multi;
  17: Empty;
  18: Empty;
  100: Empty;
  101: Empty;
  105: Empty;
  102: { readonly token: Buffer };
  103: { readonly ephemerals: readonly string[] };
  104: { readonly totalNumber: number };
  106: { readonly err: number };
  107: { readonly clientInfo: readonly ClientInfo[] };
  "-11": Empty;
}

type KeyOf<T extends number> = T extends -11 ? "-11" : T;

/** The response that belongs to a request's type. */
export type ResponseTo<T extends OpCode> = ResponseBodies[KeyOf<T>];

export type Response = ResponseBodies[keyof ResponseBodies];
