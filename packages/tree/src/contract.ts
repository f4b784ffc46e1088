/**
 * The coordination tree: what Nodeyard needs of ZooKeeper and of everything that stands in for it.
 *
 * The contract knows nothing of nodes or requests. Semantics are ZooKeeper's (ZooKeeper Programmer's Guide):
 * absolute paths, versions per znode, sequence numbers from a counter per parent that counts every child ever made,
 * session-bound ("ephemeral") znodes without children, and commits that happen whole or not at all.
 */
import type { Interest, Stat, TreeCacheChange, TreeCacheOptions } from "@nodeyard/zookeeper";

/** What the tree says of a znode. Times are milliseconds of the tree's own clock. */
export type { Interest, Stat };

/** Makes a znode; refused with NodeExists, or with NoNode where the parent is missing. */
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
  /** The version the znode must have; absent: any. */
  readonly version?: number;
}

/** Removes a znode; refused with NoNode, BadVersion or NotEmpty. */
export interface DeleteOp {
  readonly op: "delete";
  readonly path: string;
  readonly version?: number;
}

/** Demands that the znode exists and, with `version`, that it has that version. */
export interface CheckOp {
  readonly op: "check";
  readonly path: string;
  readonly version?: number;
}

/** One part of a commit, which is carried out whole or not at all. */
export type Op = CreateOp | SetOp | DeleteOp | CheckOp;

/** What one part of a commit did. */
export type OpResult =
  | { readonly op: "create"; readonly path: string; readonly stat: Stat }
  | { readonly op: "set"; readonly stat: Stat }
  | { readonly op: "delete" }
  | { readonly op: "check" };

/** Results of a commit, in the order and with the kinds of its parts. */
export type CommitResult<T extends readonly Op[]> = {
  readonly [K in keyof T]: Extract<OpResult, { readonly op: T[K] extends Op ? T[K]["op"] : never }>;
};

/** A limit on one call. Without `deadlineMs` the tree's own default holds: no call waits for ever. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly deadlineMs?: number;
}

/** What is known of the session. What depends on it, such as a lock, is certain only while it is "connected" (rule 1). */
export type SessionState = "connecting" | "connected" | "suspended" | "expired" | "closed";

/**
 * The session this process has with the tree. After `expired` the tree opens a new one by itself: `epoch` grows by one
 * and everything ephemeral of the old epoch is gone. What waits for the connection meanwhile was meant for the session
 * that is over: it is rejected with SessionExpired, outcome "none".
 */
export interface Session {
  readonly id: bigint;
  readonly epoch: number;
  readonly state: SessionState;
  /**
   * Monotonic milliseconds until which locks of this session may be trusted: send time of the last answered request
   * plus two thirds of the session timeout (rule 1). Infinity where the tree cannot lose a session by itself.
   */
  readonly trustedUntil: number;
}

/** What a feed reports: a znode is there or gone, continuity was lost (`gap`), all is reported (`synced`). */
export type Change = TreeCacheChange;

/**
 * Beside what a tree cache promises, own writes arrive from their replies (before the writer's promise resolves), once, without a read.
 */
export type FeedOptions = TreeCacheOptions;

/** The changes of a subtree, told to one listener: per path versions grow and the last state arrives; states in between may be skipped. */
export interface Feed {
  /** Resolves when the first `synced` has been told; rejects when the feed is closed before. */
  readonly synced: Promise<void>;
  /** Compares the whole subtree with what was told and tells the differences, then `synced`. */
  resync(): Promise<void>;
  /** Reads that are owed, under way included: for events that came, and for a comparison. */
  pending(): { readonly events: number; readonly walk: number };
  close(): Promise<void>;
}

/** Differences between stores that callers may see. */
export interface TreeCapabilities {
  /** Other processes can use the same tree, so writes of others must be expected. */
  readonly shared: boolean;
  /** What was acknowledged survives power loss. */
  readonly durable: boolean;
  /**
   * Longest write, bytes as `requestBytes` counts them: a commit is one write with all of its operations. A longer one is refused with
   * TooLarge before anything is sent.
   */
  readonly maxRequestBytes: number;
}

/** Figures since the tree was opened, for metrics and benches. */
export interface TreeCounters {
  /** Requests sent as one unit (a commit is one), pings not counted. */
  readonly calls: number;
  /** Operations inside them (a commit of three counts three). */
  readonly operations: number;
  /** Change notices received. */
  readonly events: number;
}

/** A call that has not been answered, for whoever wonders what a process waits for. */
export interface CallUnderWay {
  /** `get`, `stat`, `children`, `sync`, an op's name, or `commit` where there are several. */
  readonly what: string;
  /** Of a commit the first. */
  readonly path: string;
  readonly operations: number;
  /** Monotonic milliseconds at which it was made. */
  readonly since: number;
}

/**
 * Every method rejects with a `TreeError`; `error.outcome` says whether the write may have happened all the same.
 * Calls that are started in order are carried out in order. Bytes that were given to a write belong to the tree: feeds
 * tell them on, so they must not be changed afterwards.
 */
export interface Tree extends AsyncDisposable {
  readonly capabilities: TreeCapabilities;
  readonly counters: TreeCounters;
  /** The session as it is now. */
  session(): Session;
  /** Called synchronously at each change of state or epoch. Returns the function that ends it. */
  onSession(listener: (session: Session) => void): () => void;
  /** Tree time minus our wall clock, milliseconds, learnt from our own writes; 0 until the first. */
  clockOffset(): number;
  /** Calls that were made and not answered, the oldest first, those of feeds included. */
  underWay(): readonly CallUnderWay[];

  create(
    path: string,
    data?: Uint8Array,
    options?: CallOptions & { readonly ephemeral?: boolean; readonly sequential?: boolean },
  ): Promise<{ readonly path: string; readonly stat: Stat }>;
  get(path: string, options?: CallOptions): Promise<{ readonly data: Uint8Array; readonly stat: Stat }>;
  /** The znode's stat, or undefined where there is none. */
  stat(path: string, options?: CallOptions): Promise<Stat | undefined>;
  set(path: string, data: Uint8Array, options?: CallOptions & { readonly version?: number }): Promise<Stat>;
  delete(path: string, options?: CallOptions & { readonly version?: number }): Promise<void>;
  /** Names (not paths) of the children, in no order. */
  children(path: string, options?: CallOptions): Promise<readonly string[]>;
  /** All of `ops` or none of them. A refused commit rejects with `CommitFailed`, which names the op that refused. */
  commit<const T extends readonly Op[]>(ops: T, options?: CallOptions): Promise<CommitResult<T>>;
  /**
   * Resolves when every write acknowledged anywhere before the call is visible to reads made after it. It takes its turn among the writes
   * of all and costs as much as one; `path` need not exist.
   */
  sync(path: string, options?: CallOptions): Promise<void>;

  /** Follows everything at and below `root`, which need not exist yet. */
  feed(root: string, options: FeedOptions): Feed;
  close(): Promise<void>;
}
