/**
 * The coordination tree: the contract that Nodeyard requires of ZooKeeper and of every store that replaces it.
 *
 * The contract knows nothing of nodes or requests. Its semantics are ZooKeeper's (ZooKeeper Programmer's Guide):
 * absolute paths, a version per znode, sequence numbers from a counter per parent that counts every child ever created,
 * ephemeral znodes that end with their session and have no children, and commits that are applied completely or not at all.
 */
import type { Interest, Stat, TreeCacheChange, TreeCacheOptions } from "@nodeyard/zookeeper";

/** Metadata of a znode. Times are milliseconds of the tree's own clock. */
export type { Interest, Stat };

/** Creates a znode. Refused with NodeExists, or with NoNode when the parent is missing. */
export interface CreateOp {
  readonly op: "create";
  /** With `sequential`, ten digits are appended; the path may then end in "/". */
  readonly path: string;
  readonly data?: Uint8Array;
  readonly ephemeral?: boolean;
  readonly sequential?: boolean;
}

/** Replaces the data of a znode; refused with NoNode or BadVersion. */
export interface SetOp {
  readonly op: "set";
  readonly path: string;
  readonly data: Uint8Array;
  /** The version that the znode must have; default: any. */
  readonly version?: number;
}

/** Deletes a znode. Refused with NoNode, BadVersion or NotEmpty. */
export interface DeleteOp {
  readonly op: "delete";
  readonly path: string;
  readonly version?: number;
}

/** Requires that the znode exists and, with `version`, that it has this version. */
export interface CheckOp {
  readonly op: "check";
  readonly path: string;
  readonly version?: number;
}

/** One operation of a commit. A commit is applied completely or not at all. */
export type Op = CreateOp | SetOp | DeleteOp | CheckOp;

/** Result of one operation of a commit. */
export type OpResult =
  | { readonly op: "create"; readonly path: string; readonly stat: Stat }
  | { readonly op: "set"; readonly stat: Stat }
  | { readonly op: "delete" }
  | { readonly op: "check" };

/** Results of a commit, in the order of its operations and with their types. */
export type CommitResult<T extends readonly Op[]> = {
  readonly [K in keyof T]: Extract<OpResult, { readonly op: T[K] extends Op ? T[K]["op"] : never }>;
};

/** Limits of one call. Without `deadlineMs` the tree's default applies, so that no call waits for ever (rule 8). */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly deadlineMs?: number;
}

/** State of the session. Anything that depends on it, such as a lock, is certain only while it is "connected" (rule 1). */
export type SessionState = "connecting" | "connected" | "suspended" | "expired" | "closed";

/**
 * The session of this process with the tree. After `expired` the tree opens a new session by itself: `epoch` grows by one,
 * and the ephemeral znodes of the old epoch are gone. Calls that wait for the connection belong to the expired session, so
 * they are rejected with SessionExpired and outcome "none".
 */
export interface Session {
  readonly id: bigint;
  readonly epoch: number;
  readonly state: SessionState;
  /**
   * Monotonic time in milliseconds until which locks of this session may be trusted: the send time of the last answered request
   * plus two thirds of the session timeout (rule 1). Infinity when the tree cannot lose a session by itself.
   */
  readonly trustedUntil: number;
  /** Why it is not connected; absent: it is, or nobody knows. */
  readonly cause?: Error;
}

/** A report of a feed: a znode exists (`put`) or was deleted, events may have been missed (`gap`), everything is reported (`synced`). */
export type Change = TreeCacheChange;

/**
 * Options of a feed. In addition to a tree cache, a feed reports this process's own writes from their replies: once, without a read, and
 * before the writer's promise resolves.
 */
export type FeedOptions = TreeCacheOptions;

/**
 * Reports the changes of a subtree to one listener. For one path versions grow and the last state arrives; intermediate states may be
 * skipped.
 */
export interface Feed {
  /** Resolves after the first `synced`; rejects when the feed is closed before that. */
  readonly synced: Promise<void>;
  /**
   * Compares the whole subtree with what was reported, reports the differences, then `synced`. When it resolves, every write that was
   * acknowledged to any client before the call has been reported.
   */
  resync(): Promise<void>;
  /** Number of reads that are queued or in flight: for events, and for a comparison. */
  pending(): { readonly events: number; readonly walk: number };
  close(): Promise<void>;
}

/** Properties in which stores differ and that callers may see. */
export interface TreeCapabilities {
  /** Other processes can use the same tree, so a caller must expect their writes. */
  readonly shared: boolean;
  /** Acknowledged writes survive power loss (rule 10). */
  readonly durable: boolean;
  /**
   * Longest write in bytes, counted by `requestBytes`. A commit is one write with all of its operations. A longer write is refused with
   * TooLarge before it is sent.
   */
  readonly maxRequestBytes: number;
}

/** Totals since the tree was opened, for metrics and benches. */
export interface TreeCounters {
  /** Requests sent. A commit counts as one; pings do not count. */
  readonly calls: number;
  /** Operations in these requests. A commit of three operations counts as three. */
  readonly operations: number;
  /** Change events received. */
  readonly events: number;
}

/** A call without an answer yet. The stack dump lists them, to show what a process waits for. */
export interface CallUnderWay {
  /** `get`, `stat`, `children`, `sync`, the name of an operation, or `commit` for several operations. */
  readonly what: string;
  /** For a commit, the path of its first operation. */
  readonly path: string;
  readonly operations: number;
  /** Monotonic time of the call, in milliseconds. */
  readonly since: number;
}

/**
 * A tree. Every method rejects with a `TreeError`; `error.outcome` says whether the write may have been applied anyway. Calls
 * are carried out in the order in which they are started. Bytes passed to a write belong to the tree: feeds report the same
 * array, so the caller must not change it afterwards.
 */
export interface Tree extends AsyncDisposable {
  readonly capabilities: TreeCapabilities;
  readonly counters: TreeCounters;
  /** The present session. */
  session(): Session;
  /** Calls `listener` synchronously at each change of state or epoch. Returns a function that unsubscribes. */
  onSession(listener: (session: Session) => void): () => void;
  /** Tree time minus this process's wall clock in milliseconds, measured by this process's writes; 0 before the first write. */
  clockOffset(): number;
  /** Calls without an answer, the oldest first. Calls of feeds are included. */
  underWay(): readonly CallUnderWay[];

  create(
    path: string,
    data?: Uint8Array,
    options?: CallOptions & { readonly ephemeral?: boolean; readonly sequential?: boolean },
  ): Promise<{ readonly path: string; readonly stat: Stat }>;
  get(path: string, options?: CallOptions): Promise<{ readonly data: Uint8Array; readonly stat: Stat }>;
  /** The znode's Stat; undefined when it does not exist. */
  stat(path: string, options?: CallOptions): Promise<Stat | undefined>;
  set(path: string, data: Uint8Array, options?: CallOptions & { readonly version?: number }): Promise<Stat>;
  delete(path: string, options?: CallOptions & { readonly version?: number }): Promise<void>;
  /** Names (not paths) of the children, in no particular order. */
  children(path: string, options?: CallOptions): Promise<readonly string[]>;
  /** Applies all of `ops` or none. A refused commit rejects with `CommitFailed`, which names the operation that was refused. */
  commit<const T extends readonly Op[]>(ops: T, options?: CallOptions): Promise<CommitResult<T>>;
  /**
   * Resolves when every write acknowledged to any process before the call is visible to later reads. It is ordered among all writes of the
   * tree and costs as much as a write. `path` need not exist.
   */
  sync(path: string, options?: CallOptions): Promise<void>;

  /** Reports every change at and below `root`, which need not exist. */
  feed(root: string, options: FeedOptions): Feed;
  close(): Promise<void>;
}
