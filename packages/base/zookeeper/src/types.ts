/** The public contract of the client. All durations are milliseconds. */
import type { Clock, Connector, Random } from "./environment.ts";
import type { ZooKeeperError } from "./errors.ts";
import type { Acl, Request, ResponseTo, Stat } from "./wire/messages.ts";

export type * from "./environment.ts";

/** PEM text, as a string or as bytes. */
export type Pem = string | Uint8Array;

/** TLS with the server; certificates and keys as PEM text. */
export interface TlsOptions {
  /** Authorities that the server's certificate must chain to; default: the system's. */
  readonly ca?: Pem | readonly Pem[];
  /** The client's certificate and key. ZooKeeper servers set up for Zuul and Nodepool require them. */
  readonly cert?: Pem;
  readonly key?: Pem;
  readonly passphrase?: string;
  /** Whether the server's certificate must name the host; default true. Zuul's and Nodepool's own clients do not check it. */
  readonly verifyHost?: boolean;
  /** The name to check and to send as SNI; default: the host of the connection string. */
  readonly serverName?: string;
}

/** User and password of SASL DIGEST-MD5. */
export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** An identity for `addauth`, sent again with each connection: scheme `digest`, `auth` "user:password". */
export interface AuthInfo {
  readonly scheme: string;
  readonly auth: string | Uint8Array;
}

/** Connection options and limits; times in milliseconds. */
export interface ZooKeeperOptions {
  /** The session timeout to request; the server may change it to its own limits. Default 10,000. */
  readonly sessionTimeoutMs?: number;
  /** Limit for connecting (TCP, TLS) and the session handshake; default: session timeout / number of servers, at least 1 s. */
  readonly connectTimeoutMs?: number;
  /** Deadline of operations that set none; default 60,000. */
  readonly operationTimeoutMs?: number;
  /** Most requests on the wire without a reply; further ones wait in the client. Default 4,096. */
  readonly maxInFlight?: number;
  /** Most operations that wait in the client; further ones fail with QueueFull. Default 100,000. */
  readonly maxQueued?: number;
  /** Longest request; default 1,048,575, which is a server's default `jute.maxbuffer`. */
  readonly maxRequestBytes?: number;
  /** Longest reply; default 128 MiB. */
  readonly maxResponseBytes?: number;
  /** Delay before the second round over all servers, doubling with each round up to `reconnectMaxMs`. Default 100. */
  readonly reconnectBaseMs?: number;
  /** Default 2,000. */
  readonly reconnectMaxMs?: number;
  /** Whether to accept servers that have lost their quorum and answer only reads. Default false. */
  readonly allowReadOnly?: boolean;
  readonly tls?: TlsOptions;
  /** SASL DIGEST-MD5. */
  readonly sasl?: Credentials;
  /** Identities for `addauth`, for instance `{scheme: "digest", auth: "user:password"}`. Sent on every connection. */
  readonly auth?: readonly AuthInfo[];
  readonly hooks?: Hooks;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly connector?: Connector;
}

/** Called synchronously on the hot path: keep them short, and never let them throw. */
export interface Hooks {
  /** A request was written to the connection. `subOperations` is 1 except for multis. */
  packetSent?(opCode: number, bytes: number, subOperations: number): void;
  /** A reply, an event (`xid` -1) or a pong (`xid` -2) arrived. */
  packetReceived?(xid: number, bytes: number): void;
  /** A request was answered. `ms` counts from the turn of the event loop that sent it. */
  roundTrip?(opCode: number, ms: number, err: number): void;
}

/** Totals since the client was made. */
export interface Counters {
  readonly packetsSent: number;
  readonly packetsReceived: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Operations; each operation of a multi counts. */
  readonly subOperations: number;
  readonly events: number;
  readonly connections: number;
}

/** State of the session. Locks and ephemeral znodes are certain to exist while "connected", and are gone from "expired" on. */
export type SessionState =
  /** No session yet, or no new session yet after an expiry. */
  | "connecting"
  | "connected"
  /** Disconnected. The server may have expired the session, which the client learns when it reconnects. */
  | "suspended"
  /** A server answered that the session has expired. The client opens a new one by itself. */
  | "expired"
  /** The client was closed; no other state follows. */
  | "closed";

/** The session now. The client updates the same object, so read it when needed and do not keep its values. */
export interface SessionInfo {
  readonly state: SessionState;
  /** 0n before the first session. */
  readonly id: bigint;
  /** Negotiated with the server; the requested timeout before the first session. */
  readonly timeoutMs: number;
  /** Counts sessions from 1; 0 before the first. Ephemeral znodes of an earlier epoch are gone. */
  readonly epoch: number;
  readonly readOnly: boolean;
  /**
   * Monotonic time at which the last answered request (pings included) was sent, or a little earlier; -Infinity before the
   * first. The server cannot expire the session before this time plus `timeoutMs`.
   */
  readonly lastAnsweredSentAt: number;
}

/** State of connection and session, reported with each change. `epoch` grows by one with each new session. */
export interface Status {
  readonly state: SessionState;
  readonly epoch: number;
  readonly sessionId: bigint;
  readonly readOnly: boolean;
  /** With "connected": true when the previous session continues on a new connection, false for a new session. */
  readonly reattached: boolean;
  /**
   * The error behind "suspended", "expired" and "closed". While no server can be reached, "connecting" or "suspended" is
   * reported again after each round, with the error of that round.
   */
  readonly cause?: Error;
}

/** What happened to a watched path. "data" and "children" mean that the data or the list of children changed. */
export type WatchEventType =
  | "created"
  | "deleted"
  | "data"
  | "children"
  /** The session expired or the client was closed: a one-shot watch will not fire. */
  | "lost";

/** An event of a watch, with the path relative to the chroot. Events carry no data: read the znode to see its state. */
export interface WatchEvent {
  readonly type: WatchEventType;
  readonly path: string;
  /** Zxid of the change on servers 3.9 and newer; otherwise -1n. */
  readonly zxid: bigint;
}

/** Called in the order of the connection, before any later reply is delivered. Must not throw. */
export type WatchListener = (event: WatchEvent) => void;

/**
 * "persistent" reports one znode and changes of its list of children. "persistent-recursive" reports a whole subtree, without changes of
 * lists of children.
 */
export type WatchMode = "persistent" | "persistent-recursive";

/** A persistent watch. It survives reconnects and expiry. Events in between are missed: compare again on "connected". */
export interface Watch {
  readonly path: string;
  readonly mode: WatchMode;
  /** Stops the listener at once, and removes the watch on the server unless another listener uses it. */
  remove(options?: OpOptions): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Options of every operation. */
export interface OpOptions {
  /** Milliseconds from now until the operation fails with DeadlineExceeded; default `operationTimeoutMs`. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  /** Fails with SessionExpired, without being sent, unless the session has this epoch at the time of sending. */
  readonly epoch?: number;
}

/** Options of reads. */
export interface ReadOptions extends OpOptions {
  /** Sets a one-shot watch: called once, at the next change that this read would see. */
  readonly watch?: WatchListener;
}

/** Options of a create. */
export interface CreateOptions extends OpOptions {
  /** The server deletes the znode when the session ends. Default false. */
  readonly ephemeral?: boolean;
  /** Appends ten digits of the parent's counter to the path, which may then end in "/". */
  readonly sequential?: boolean;
  /** The server deletes the znode some time after its last child was deleted. */
  readonly container?: boolean;
  /** The server deletes the znode when it has no children and was not changed for this long. Servers must have TTL znodes enabled. */
  readonly ttlMs?: number;
  /** Default: every client may do everything (`OPEN_ACL`). */
  readonly acl?: readonly Acl[];
}

/** Options of `set` and `delete`. The operation fails with BadVersion when the version does not match. */
export interface VersionOptions extends OpOptions {
  /** The version that the znode must have; default: any. */
  readonly version?: number;
}

/** A znode that was created. */
export interface Created {
  /** The path; for a sequential create with its digits. */
  readonly path: string;
  readonly stat: Stat;
}

/** Data and Stat of a znode at one moment. */
export interface Data {
  readonly data: Buffer;
  readonly stat: Stat;
}

/** The list of a znode's children, with the Stat of the znode. */
export interface Children {
  /** Names, in no particular order. */
  readonly children: readonly string[];
  readonly stat: Stat;
}

/** The access list of a znode. `setAcl` compares its `version` with `stat.aversion`. */
export interface AccessList {
  readonly acl: readonly Acl[];
  readonly stat: Stat;
}

/** One operation of a multi, which the server applies completely or not at all. */
export type MultiOp =
  | ({ readonly op: "create"; readonly path: string; readonly data?: Uint8Array } & Omit<
      CreateOptions,
      keyof OpOptions
    >)
  | { readonly op: "set"; readonly path: string; readonly data: Uint8Array; readonly version?: number }
  | { readonly op: "delete"; readonly path: string; readonly version?: number }
  | { readonly op: "check"; readonly path: string; readonly version?: number };

/**
 * Result of one operation of a multi. Servers (3.9 too) answer its creates without a Stat, except containers and TTL
 * znodes. `czxid` is always known, because it is the zxid of the reply.
 */
export type MultiOpResult =
  | { readonly op: "create"; readonly path: string; readonly czxid: bigint; readonly stat?: Stat }
  | { readonly op: "set"; readonly stat: Stat }
  | { readonly op: "delete" }
  | { readonly op: "check" };

/** One part of a read of several znodes in one round trip. */
export type MultiReadOp =
  | { readonly op: "get"; readonly path: string }
  | { readonly op: "children"; readonly path: string };

/** Result of one operation. An operation that fails does not affect the others. */
export type MultiReadResult =
  | { readonly op: "get"; readonly data: Buffer; readonly stat: Stat }
  | { readonly op: "children"; readonly children: readonly string[] }
  | { readonly op: "error"; readonly error: ZooKeeperError };

/** Exactly one of the two arguments is given. Called synchronously in the order of the connection. Must not throw. */
export type OnReply<R extends Request> = (
  error: ZooKeeperError | undefined,
  response: ResponseTo<R["type"]> | undefined,
) => void;
