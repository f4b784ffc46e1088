/**
 * The messages of the ZooKeeper protocol (jute, zookeeper.jute of ZooKeeper 3.9). Each message is one table of fields, which yields its
 * type, its writer and its reader. Field names are those of the protocol. 64-bit ids are bigints; times are numbers of milliseconds.
 */
import {
  bool,
  buffer,
  bytes,
  int,
  type Kind,
  list,
  long,
  longNumber,
  nullableBytes,
  record,
  text,
  texts,
  type ValueOf,
} from "./jute.ts";
import { OpCode } from "./op-code.ts";

/** Metadata of a znode. Zxids (transaction ids) order all changes of the tree. */
export interface Stat {
  readonly czxid: bigint;
  readonly mzxid: bigint;
  /** Milliseconds since the epoch, by the server's clock. */
  readonly ctime: number;
  readonly mtime: number;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  /** Session that owns the znode; 0n for persistent znodes. Containers and TTL znodes have a marker in the same field. */
  readonly ephemeralOwner: bigint;
  readonly dataLength: number;
  readonly numChildren: number;
  readonly pzxid: bigint;
}

/** Written by hand rather than as a table, because almost every reply contains a Stat and reading a whole tree depends on its speed. */
export const stat: Kind<Stat> = {
  write(w, value) {
    w.long(value.czxid);
    w.long(value.mzxid);
    w.longNumber(value.ctime);
    w.longNumber(value.mtime);
    w.int(value.version);
    w.int(value.cversion);
    w.int(value.aversion);
    w.long(value.ephemeralOwner);
    w.int(value.dataLength);
    w.int(value.numChildren);
    w.long(value.pzxid);
  },
  read: (r) => ({
    czxid: r.long(),
    mzxid: r.long(),
    ctime: r.longNumber(),
    mtime: r.longNumber(),
    version: r.int(),
    cversion: r.int(),
    aversion: r.int(),
    ephemeralOwner: r.long(),
    dataLength: r.int(),
    numChildren: r.int(),
    pzxid: r.long(),
  }),
};

const aclEntry = record({ perms: int, scheme: text, id: text });
/** An access list: 12 bytes are the shortest entry. */
export const acl = list(aclEntry, 12);
/** One entry of an access list: `perms` is a sum of the bits in `Permission`. */
export type Acl = ValueOf<typeof aclEntry>;

const clientInfo = record({ authScheme: text, user: text });
/** One identity of a connection, as the server answers `whoAmI`. */
export type ClientInfo = ValueOf<typeof clientInfo>;

/** Clients and servers older than 3.4 send the handshake without this last field. */
const readOnly: Kind<boolean> = { write: bool.write, read: (r) => r.left > 0 && r.bool() };

/** The first message of a connection. Session id 0 asks for a new session; any other id continues that session. */
export const connectRequest = record({
  protocolVersion: int,
  lastZxidSeen: long,
  timeOut: int,
  sessionId: long,
  passwd: bytes,
  readOnly,
});
/** See `connectRequest`. */
export type ConnectRequest = ValueOf<typeof connectRequest>;

/** `timeOut` is the negotiated session timeout in milliseconds; 0 or less: the session has expired. */
export const connectResponse = record({
  protocolVersion: int,
  timeOut: int,
  sessionId: long,
  passwd: bytes,
  readOnly,
});
/** See `connectResponse`. */
export type ConnectResponse = ValueOf<typeof connectResponse>;

/** Precedes each request. `xid` numbers the requests of a connection; the values of `Xid` have special meanings. */
export const requestHeader = record({ xid: int, type: int });
/** See `requestHeader`. */
export type RequestHeader = ValueOf<typeof requestHeader>;

/** Precedes each reply. `zxid` is the newest transaction that the server has applied. When `err` is not 0 no body follows. */
export const replyHeader = record({ xid: int, zxid: long, err: int });
/** See `replyHeader`. */
export type ReplyHeader = ValueOf<typeof replyHeader>;

/** An event of a watched path; `type` is a code of `EventType`. It carries no data. */
export const watcherEvent = record({ type: int, state: int, path: text });
/** See `watcherEvent`. */
export type WatcherEvent = ValueOf<typeof watcherEvent>;

const creation = { path: text, data: nullableBytes, acl, flags: int };
const versioned = record({ path: text, version: int });
/** Reads one path and can set a one-shot watch on it. */
const reading = record({ path: text, watch: bool });
const pathOnly = record({ path: text });
const watchRemoval = record({ path: text, watcherType: int });
const bare = record({});
const oneShots = { relativeZxid: long, dataWatches: texts, existWatches: texts, childWatches: texts };
/** The lists that setWatches2 has and setWatches lacks. */
const noTexts: Kind<readonly string[]> = { write: () => {}, read: () => [] };
/** A number that no server reads precedes the scheme. */
const authScheme: Kind<string> = {
  write(w, value) {
    w.int(0);
    w.string(value);
  },
  read(r) {
    r.int();
    return r.string();
  },
};

/** The body of each request except multi and multiRead. `ttl` is in milliseconds. */
export const requestBodies = {
  [OpCode.create]: record(creation),
  [OpCode.create2]: record(creation),
  [OpCode.createContainer]: record(creation),
  [OpCode.createTtl]: record({ ...creation, ttl: longNumber }),
  [OpCode.delete]: versioned,
  [OpCode.check]: versioned,
  [OpCode.exists]: reading,
  [OpCode.getData]: reading,
  [OpCode.getChildren]: reading,
  [OpCode.getChildren2]: reading,
  [OpCode.setData]: record({ path: text, data: nullableBytes, version: int }),
  [OpCode.getAcl]: pathOnly,
  [OpCode.sync]: pathOnly,
  [OpCode.getAllChildrenNumber]: pathOnly,
  [OpCode.getEphemerals]: pathOnly,
  [OpCode.setAcl]: record({ path: text, acl, version: int }),
  [OpCode.checkWatches]: watchRemoval,
  [OpCode.removeWatches]: watchRemoval,
  [OpCode.addWatch]: record({ path: text, mode: int }),
  [OpCode.auth]: record({ scheme: authScheme, auth: bytes }),
  [OpCode.sasl]: record({ token: bytes }),
  [OpCode.setWatches]: record({
    ...oneShots,
    persistentWatches: noTexts,
    persistentRecursiveWatches: noTexts,
  }),
  [OpCode.setWatches2]: record({ ...oneShots, persistentWatches: texts, persistentRecursiveWatches: texts }),
  [OpCode.ping]: bare,
  [OpCode.whoAmI]: bare,
  [OpCode.closeSession]: bare,
} as const;

type Code = typeof OpCode;
type Bodies = typeof requestBodies;
type Of<T extends keyof Bodies> = { readonly type: T } & ValueOf<Bodies[T]>;

/** Creates a znode; `flags` is one of `CreateFlag`. The reply to create2 contains the Stat; the reply to create does not. */
export type CreateRequest = Of<Code["create"] | Code["create2"] | Code["createContainer"]>;
/** Creates a znode that the server deletes when it has no children and was not changed for `ttl` milliseconds. */
export type CreateTtlRequest = Of<Code["createTtl"]>;
/** Deletes a znode of this version; -1: of any version. */
export type DeleteRequest = Of<Code["delete"]>;
/** Replaces the data of a znode of this version; -1: of any version. */
export type SetDataRequest = Of<Code["setData"]>;
/** Fails unless the znode has this version. Servers accept it only within a multi. */
export type CheckRequest = Of<Code["check"]>;
/** Requests that read one path and can set a one-shot watch on it. */
export type ReadRequest = Of<Code["exists"] | Code["getData"] | Code["getChildren"] | Code["getChildren2"]>;
/** Replaces the access list; `version` is compared with the znode's aversion. */
export type SetAclRequest = Of<Code["setAcl"]>;
/** Checks for watches of this client of a kind (`WatcherType`), or removes them. */
export type RemoveWatchesRequest = Of<Code["checkWatches"] | Code["removeWatches"]>;
/** Sets a persistent watch (`AddWatchMode`). */
export type AddWatchRequest = Of<Code["addWatch"]>;
/** Sends credentials (`addauth`). They hold for this connection only. */
export type AuthRequest = Of<Code["auth"]>;
/** Sets watches again on a new connection. The server reports changes since `relativeZxid` at once. */
export type SetWatchesRequest = Of<Code["setWatches"] | Code["setWatches2"]>;

/** One operation of a multi. */
export type MultiOpRequest =
  | CreateRequest
  | CreateTtlRequest
  | DeleteRequest
  | SetDataRequest
  | CheckRequest
  | ReadRequest;

/** The server applies all of `ops` or none. */
export interface MultiRequest {
  readonly type: Code["multi"];
  readonly ops: readonly MultiOpRequest[];
}

/** `ops` contains only getData and getChildren. */
export interface MultiReadRequest {
  readonly type: Code["multiRead"];
  readonly ops: readonly MultiOpRequest[];
}

/**
 * Every request by its operation code; ping, auth, sasl and setWatches are sent with special xids. The handshake has messages of its own.
 */
export type Request =
  | MultiOpRequest
  | SetAclRequest
  | MultiRequest
  | MultiReadRequest
  | RemoveWatchesRequest
  | AddWatchRequest
  | AuthRequest
  | SetWatchesRequest
  | Of<Code["getAcl"] | Code["sync"] | Code["getAllChildrenNumber"] | Code["getEphemerals"]>
  | Of<Code["sasl"]>
  | Of<Code["ping"] | Code["closeSession"] | Code["whoAmI"]>;

const created = record({ path: text, stat });
const statOnly = record({ stat });

/** The body of each successful reply except multi and multiRead, by the operation code of the request. Codes not listed have no body. */
export const responseBodies = {
  [OpCode.create]: pathOnly,
  [OpCode.create2]: created,
  [OpCode.createContainer]: created,
  [OpCode.createTtl]: created,
  [OpCode.exists]: statOnly,
  [OpCode.getData]: record({ data: buffer, stat }),
  [OpCode.setData]: statOnly,
  [OpCode.getAcl]: record({ acl, stat }),
  [OpCode.setAcl]: statOnly,
  [OpCode.getChildren]: record({ children: texts }),
  [OpCode.getChildren2]: record({ children: texts, stat }),
  [OpCode.sync]: pathOnly,
  [OpCode.sasl]: record({ token: buffer }),
  [OpCode.getEphemerals]: record({ ephemerals: texts }),
  [OpCode.getAllChildrenNumber]: record({ totalNumber: int }),
  [OpCode.addWatch]: record({ err: int }),
  [OpCode.whoAmI]: record({ clientInfo: list(clientInfo, 8) }),
} as const;

type Replies = typeof responseBodies;
type ResultOf<T extends keyof Replies> = { readonly type: T } & ValueOf<Replies[T]>;

/** Result of one operation of a multi: the body of its response, or its error code. */
export type MultiResult =
  | ResultOf<Code["create"]>
  | ResultOf<Code["create2"] | Code["createContainer"] | Code["createTtl"]>
  | { readonly type: Code["delete"] | Code["check"] }
  | ResultOf<Code["setData"]>
  | ResultOf<Code["getData"]>
  | ResultOf<Code["getChildren"]>
  | { readonly type: "error"; readonly err: number };

/** A reply without a body. */
export interface Empty {
  readonly type?: undefined;
}

/** One result for each operation, in their order. */
export interface MultiResponse {
  readonly results: readonly MultiResult[];
}

/** The response that belongs to a request's type. */
export type ResponseTo<T extends OpCode> = T extends keyof Replies
  ? ValueOf<Replies[T]>
  : T extends Code["multi"] | Code["multiRead"]
    ? MultiResponse
    : Empty;

/** The body of any successful reply. */
export type Response = ResponseTo<OpCode>;
