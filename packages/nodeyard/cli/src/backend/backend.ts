import type { Lease, NodeRecord, Token } from "@nodeyard/model";
import type {
  AskOptions,
  ConsoleEnd,
  Erased,
  Explained,
  Explanation,
  Following,
  Forgotten,
  ImageWork,
  LeaseProgress,
  Listing,
  NewToken,
  ProviderRecords,
} from "@nodeyard/operations";
import type { AgeFormat, Row } from "@nodeyard/operations/listing";

/** How lists write times: for people, or in seconds. */
export type Ages = Exclude<AgeFormat, "epoch">;

/**
 * A list, and what of it cannot be read. A server names unreadable records only in the list of images; elsewhere `skipped` is
 * empty.
 */
export interface Rows extends Pick<Listing<unknown>, "skipped"> {
  /** In the order in which they are printed. */
  readonly rows: readonly Row[];
}

/** The lists that commands print. */
export type ListName = "nodes" | "leases" | "requests" | "uploads" | "builds" | "images" | "standings";

/** The lists that can be watched. */
export type Watched = "nodes" | "requests" | "leases" | "images" | "standings";

/** What ssh needs of a node. */
export type NodeAccess = Pick<
  NodeRecord,
  "id" | "type" | "provider" | "interfaceIp" | "connectionType" | "connectionPort" | "username" | "hostKeys"
>;

/** A lease that was asked for. */
export interface Requested {
  /** As it was written: "waiting", with the id of its request. */
  readonly lease: Lease;
  /** Follows it until it is granted or ends. Called once; the caller closes what it returns, whatever happens. */
  follow(onChange: (progress: LeaseProgress) => void): Following;
}

/** A node that is waited for to go. */
export interface Gone {
  /**
   * Resolves when the record is gone, also when there was none. Rejects by `close` before, and when the connection is lost for
   * good.
   */
  readonly done: Promise<void>;
  /** Stops following; twice is safe. The node is deleted all the same. */
  close(): Promise<void>;
}

/** What `explain` found, and what it could not ask. */
export interface Explanations {
  /** Undefined: no process knows the subject. */
  readonly explanation: Explanation | undefined;
  /** Members that did not answer in time; empty of a server, which says so in the explanation. */
  readonly silent: readonly string[];
  /** The journal in which events of launchers that do not answer were looked up; for messages only. */
  readonly journal: string;
}

/** A build of a diskimage. */
export interface Build {
  /** Without the image's name. */
  readonly id: string;
  /** "building", "ready", "failed" or "deleting" (docs/contract/records.md, "Image build"). */
  readonly state: string;
  /** Host of the builder that made it; its log is there. Null: the record does not say. */
  readonly builder: string | null;
}

/** Which upload of which build. */
export interface UploadPlace {
  readonly provider: string;
  readonly image: string;
  /** Without the image's name. */
  readonly build: string;
  /** Ten digits, the name of its znode. */
  readonly upload: string;
}

/** How far a build is. `total` and `etaMs` are null as long as the builder cannot know them. */
export type BuildProgress = Pick<
  ImageWork,
  "phase" | "bytes" | "total" | "bytesPerSecond" | "etaMs" | "elapsedMs"
>;

/** Pools that launchers serve. */
export interface ServedPool {
  readonly provider: string;
  /** Without the provider's name. */
  readonly pool: string;
  /** As the launcher registered them: those of its configuration, whether they have capacity or not. */
  readonly labels: readonly string[];
}

/**
 * What commands read and change: the tree, or a Nodeyard behind its API. Rows have the keys of `listing`, whatever they are made
 * of, so that a command prints the same from both. Every method may reject: on the tree with TreeError, NodeOperationError,
 * LeaseError and their like, behind the API with CallRefused or ClientError. None retries a change by itself; `withBackend` ends
 * the connection.
 */
export interface Backend {
  /**
   * The time that ages are counted from, milliseconds: the tree's, or of a server this machine's, which may be off by their
   * difference.
   */
  now(): number;
  /** Reads the whole list: filters are applied by the command, which has to know whether a name occurs at all. */
  list(name: ListName, ages: Ages): Promise<Rows>;
  /** A row of the list of nodes; undefined: there is no such node. */
  node(id: string, ages: Ages): Promise<Row | undefined>;
  /** Pools of all launchers that are registered now, of Nodepool's too. */
  pools(): Promise<readonly ServedPool[]>;
  /** Of all providers that are served, or that anything belongs to. */
  providers(): Promise<readonly string[]>;
  /** Undefined: the diskimage is unknown. `paused`: by a command; a pause in the configuration is known to builders alone. */
  image(name: string): Promise<{ readonly paused: boolean } | undefined>;
  /** Of a diskimage, the newest first. */
  builds(image: string): Promise<readonly Build[]>;
  /** How far a build is; undefined: no builder reports it, or it has ended. */
  buildProgress(image: string, build: string): Promise<BuildProgress | undefined>;
  /** What the tree has of a provider, configured or not. */
  providerRecords(name: string): Promise<ProviderRecords>;
  /** Asks every live launcher and builder, for three seconds at most. */
  explain(subject: Explained): Promise<Explanations>;
  /** The end of the console of a node; undefined: there is no such node. */
  console(node: string): Promise<ConsoleEnd | undefined>;
  /**
   * Calls `onChange` when any of these may have changed, also once for each record at the start. A connection that is lost is not
   * reported: callers look again from time to time.
   */
  watch(what: readonly Watched[], onChange: () => void): { close(): Promise<void> };

  /**
   * Writes a lease with its request. When it rejects, a lease may be left behind where even its release failed; it ends at its
   * expiry.
   */
  request(options: AskOptions): Promise<Requested>;
  /** How to reach the nodes of a granted lease. A node whose record is gone by then is left out. */
  access(lease: Lease): Promise<readonly NodeAccess[]>;
  /** Idempotent. "unknown": no such lease exists, which also a lease is that has ended and whose record launchers have deleted. */
  release(lease: string): Promise<"released" | "unknown">;
  /** Calls `fn` with "connected" or another state when the connection is lost or back; returns a function that ends that. */
  onConnection(fn: (state: string) => void): () => void;

  /**
   * `forSeconds` 0: until max-hold-age of the configuration. Rejects when the node's state does not allow it, or another client
   * has its lock.
   */
  hold(node: string, options: { readonly comment: string; readonly forSeconds: number }): Promise<void>;
  /**
   * Marks it for deletion. Rejects when another client has its lock for longer than five seconds, or no launcher would delete it. `now`: also
   * of a node that is being deleted; tries at once again what could not be deleted in many tries.
   */
  deleteNode(node: string, now: boolean): Promise<void>;
  /** Removes the record of a node that no launcher would delete. */
  forgetNode(node: string): Promise<Forgotten>;
  /** Follows a node until it is gone. */
  untilGone(node: string): Gone;
  /**
   * Removes the records of a provider; `force`: also of one that is served, and locked nodes. Twice is safe: the second finds
   * less.
   */
  erase(provider: string, force: boolean): Promise<Erased>;
  /** Returns the ids of the builds that existed before, so that the caller can wait for a new one. */
  requestBuild(image: string): Promise<ReadonlySet<string>>;
  /** Idempotent. */
  pauseImage(image: string, paused: boolean): Promise<void>;
  /** Marks a build, or an upload, for deletion by builders. */
  deleteBuild(image: string, build: string): Promise<void>;
  deleteUpload(at: UploadPlace): Promise<void>;
  /** Records of images for a restore, by path. */
  exportImages(): Promise<Readonly<Record<string, string>>>;
  /** Writes an export that was checked; rejects while a builder runs. Repeated after a failure, it completes the import. */
  importImages(all: ReadonlyMap<string, Uint8Array>): Promise<void>;
  /** Returns the id of the backing node. */
  retire(node: string, why: string): Promise<string>;

  /** Without the hashes, which no client needs. */
  tokens(): Promise<Listing<Omit<Token, "hash" | "created">>>;
  /** `text`: what the client sends, shown once. `expires`: milliseconds, of the tree. */
  createToken(wanted: NewToken): Promise<{ readonly text: string; readonly expires: number }>;
  /** `by`: who revokes it, for people; a server notes the name of the caller's own token instead. */
  revokeToken(name: string, by: string): Promise<void>;
}
