/** The public contract of the client. All durations are milliseconds. */
import type { Clock, Connector, Random } from "./environment.ts";
import type { ZooKeeperError } from "./errors.ts";
import type { Acl, Request, ResponseTo, Stat } from "./wire/messages.ts";

export type * from "./environment.ts";

/** PEM text, or bytes of it. */
export type Pem = string | Uint8Array;

/** TLS with the server; certificates and keys as PEM text. */
export interface TlsOptions {
  /** Authorities that the server's certificate must chain to; default: the system's. */
  readonly ca?: Pem | readonly Pem[];
  /** The client's certificate and key: servers of Zuul and Nodepool demand them. */
  readonly cert?: Pem;
  readonly key?: Pem;
  readonly passphrase?: string;
  /** Whether the certificate must name the host; default true. Zuul's and Nodepool's clients do not check it. */
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

/** How a client connects, and its bounds; times in milliseconds. */
export interface ZooKeeperOptions {
  /** What to ask the server for; it may clamp. Default 10,000. */
  readonly sessionTimeoutMs?: number;
  /** Limit for one TCP and TLS connect with session handshake; default: session timeout / number of servers, 1 s at least. */
  readonly connectTimeoutMs?: number;
  /** Deadline of every operation that names none; default 60,000. */
  readonly operationTimeoutMs?: number;
  /** Requests that may be unanswered on the wire; more wait in the client. Default 4,096. */
  readonly maxInFlight?: number;
  /** Operations that may wait in the client; more fail with QueueFull. Default 100,000. */
  readonly maxQueued?: number;
  /** Longest request; default 1,048,575, which is a server's default `jute.maxbuffer`. */
  readonly maxRequestBytes?: number;
  /** Longest reply; default 128 MiB. */
  readonly maxResponseBytes?: number;
  /** Delay before the second round over all servers, doubling with each round up to `reconnectMaxMs`. Default 100. */
  readonly reconnectBaseMs?: number;
  /** Default 2,000. */
  readonly reconnectMaxMs?: number;
  /** Whether servers that lost their quorum will do. Default false. */
  readonly allowReadOnly?: boolean;
  readonly tls?: TlsOptions;
  /** SASL DIGEST-MD5. */
  readonly sasl?: Credentials;
  /** addauth, digest for instance: `{scheme: "digest", auth: "user:password"}`. Sent anew on every connection. */
  readonly auth?: readonly AuthInfo[];
  readonly hooks?: Hooks;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly connector?: Connector;
}

/** Called synchronously on the hot path: keep them short, and never let them throw. */
export interface Hooks {
  /** A request was handed to the connection. `subOperations` is 1 except for multis. */
  packetSent?(opCode: number, bytes: number, subOperations: number): void;
  /** A reply, an event (`xid` -1) or a pong (`xid` -2) arrived. */
  packetReceived?(xid: number, bytes: number): void;
  /** A request was answered. `ms` counts from the turn of the event loop that sent it. */
  roundTrip?(opCode: number, ms: number, err: number): void;
}

/** Sums since the client was made. */
export interface Counters {
  readonly packetsSent: number;
  readonly packetsReceived: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Operations, each one of a multi counted. */
  readonly subOperations: number;
  readonly events: number;
  readonly connections: number;
}

/** What the client knows of its session. Locks and ephemeral znodes are certain while it is "connected", and over from "expired" on. */
export type SessionState =
  /** No session yet, or none again after an expiry. */
  | "connecting"
  | "connected"
  /** Disconnected; the server may or may not still have the session. */
  | "suspended"
  /** A server said that the session is over. A new one is opened by itself. */
  | "expired"
  /** For good. */
  | "closed";

/** The session now. A fresh object per call is not promised; read it, don't keep it. */
export interface SessionInfo {
  readonly state: SessionState;
  /** 0n before the first session. */
  readonly id: bigint;
  /** Negotiated; the asked one before the first session. */
  readonly timeoutMs: number;
  /** Counts sessions from 1; 0 before the first. Everything ephemeral of an earlier epoch is gone. */
  readonly epoch: number;
  readonly readOnly: boolean;
  /**
   * Monotonic time at which the last request that the server has answered (pings included) was sent, or a little
   * earlier; -Infinity before the first. The server cannot expire the session before this plus `timeoutMs`.
   */
  readonly lastAnsweredSentAt: number;
}

/** The state of connection and session, told with each change. `epoch` grows by one with each new session. */
export interface Status {
  readonly state: SessionState;
  readonly epoch: number;
  readonly sessionId: bigint;
  readonly readOnly: boolean;
  /** With "connected": false for a new session, true for the old one on a new connection. */
  readonly reattached: boolean;
  /**
   * Why: with "suspended", "expired" and "closed", and with "connecting" or "suspended" once more after each round in
   * which no server could be reached.
   */
  readonly cause?: Error;
}

/** What happened to a watched path; "data" and "children" say that there is something new to read. */
export type WatchEventType =
  | "created"
  | "deleted"
  | "data"
  | "children"
  /** The session expired, or the client was closed: a one-shot watch will not fire any more. */
  | "lost";

/** An event of a watch, with the path below the chroot. It has no data: what is there now has to be read. */
export interface WatchEvent {
  readonly type: WatchEventType;
  readonly path: string;
  /** Zxid of the change where the server tells it (3.9 and newer), otherwise -1n. */
  readonly zxid: bigint;
}

/** Called in the order of the wire, before any later reply is handed out. It must not throw. */
export type WatchListener = (event: WatchEvent) => void;

/**
 * "persistent" reports one znode and changes of its list of children; "persistent-recursive" reports a whole subtree, without lists of
 * children.
 */
export type WatchMode = "persistent" | "persistent-recursive";

/** A persistent watch. It survives reconnects and expiry (events in between are missed: resync on "connected"). */
export interface Watch {
  readonly path: string;
  readonly mode: WatchMode;
  /** Stops the listener at once, and the server's part unless others use it. */
  remove(options?: OpOptions): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What every operation takes. */
export interface OpOptions {
  /** Time from now until the operation fails with DeadlineExceeded; default `operationTimeoutMs`. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  /** Fails with SessionExpired, unsent, unless the session has this epoch when the request is sent. */
  readonly epoch?: number;
}

/** What reads take. */
export interface ReadOptions extends OpOptions {
  /** A one-shot watch: called once, at the next change that this read would see. */
  readonly watch?: WatchListener;
}

/** What kind of znode is made. */
export interface CreateOptions extends OpOptions {
  /** Default false. Ends with the session. */
  readonly ephemeral?: boolean;
  /** Ten digits of the parent's counter are appended; the path may then end in "/". */
  readonly sequential?: boolean;
  /** Deleted by the server some time after its last child. */
  readonly container?: boolean;
  /** Deleted by the server when unchanged and without children for so long; servers must have it enabled. */
  readonly ttlMs?: number;
  /** Default: everybody may do everything. */
  readonly acl?: readonly Acl[];
}

/** What `set` and `delete` take; a version that does not match is refused with BadVersion. */
export interface VersionOptions extends OpOptions {
  /** The version the znode must have; default: any. */
  readonly version?: number;
}

/** A znode that was made. */
export interface Created {
  /** With the digits of a sequential create. */
  readonly path: string;
  readonly stat: Stat;
}

/** A znode as it was read, in one moment. */
export interface Data {
  readonly data: Buffer;
  readonly stat: Stat;
}

/** The list of a znode's children, with the Stat of the znode. */
export interface Children {
  /** Names, in no order. */
  readonly children: readonly string[];
  readonly stat: Stat;
}

/** Who may do what with a znode; `stat.aversion` is what a change of it names. */
export interface AccessList {
  readonly acl: readonly Acl[];
  readonly stat: Stat;
}

/** One part of a multi, which is carried out whole or not at all. */
export type MultiOp =
  | ({ readonly op: "create"; readonly path: string; readonly data?: Uint8Array } & Omit<
      CreateOptions,
      keyof OpOptions
    >)
  | { readonly op: "set"; readonly path: string; readonly data: Uint8Array; readonly version?: number }
  | { readonly op: "delete"; readonly path: string; readonly version?: number }
  | { readonly op: "check"; readonly path: string; readonly version?: number };

/**
 * Servers (3.9 too) answer the creates of a multi without a Stat, except those with a TTL and containers; `czxid` is
 * known all the same, as the zxid of the reply.
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

/** The answer to one part; an error of one part leaves the others as they are. */
export type MultiReadResult =
  | { readonly op: "get"; readonly data: Buffer; readonly stat: Stat }
  | { readonly op: "children"; readonly children: readonly string[] }
  | { readonly op: "error"; readonly error: ZooKeeperError };

/** Exactly one of the two is given. Called synchronously in the order of the wire. It must not throw. */
export type OnReply<R extends Request> = (
  error: ZooKeeperError | undefined,
  response: ResponseTo<R["type"]> | undefined,
) => void;
