import type { Lease, NodeRecord, Token } from "@nodeyard/model";
import type { AgeFormat, Row } from "../../listing/index.ts";
import type {
  AskOptions,
  Erased,
  Explained,
  Explanation,
  Following,
  ImageWork,
  LeaseProgress,
  Listing,
  NewToken,
  ProviderRecords,
} from "../../operations/index.ts";

/** How lists write times: for people, or in seconds. */
export type Ages = Exclude<AgeFormat, "epoch">;

/** A list, and what of it cannot be read. */
export interface Rows extends Pick<Listing<unknown>, "skipped"> {
  readonly rows: readonly Row[];
}

/** The lists that commands print. */
export type ListName = "nodes" | "leases" | "requests" | "uploads" | "builds" | "images";

/** The lists that can be watched. */
export type Watched = "nodes" | "requests" | "leases" | "images";

/** What ssh needs of a node. */
export type NodeAccess = Pick<
  NodeRecord,
  "id" | "type" | "provider" | "interfaceIp" | "connectionType" | "connectionPort" | "username" | "hostKeys"
>;

/** A lease that was asked for. */
export interface Requested {
  readonly lease: Lease;
  /** Follows it until it is granted or ends. */
  follow(onChange: (progress: LeaseProgress) => void): Following;
}

/** A node that is waited for to go. */
export interface Gone {
  /** Rejects by `close` before. */
  readonly done: Promise<void>;
  close(): Promise<void>;
}

export interface Explanations {
  /** Undefined: no process knows the subject. */
  readonly explanation: Explanation | undefined;
  /** Members that did not answer. */
  readonly silent: readonly string[];
  /** The journal in which events of launchers that do not answer were looked up. */
  readonly journal: string;
}

/** A build of a diskimage. */
export interface Build {
  /** Without the image's name. */
  readonly id: string;
  readonly state: string;
  readonly builder: string | null;
}

/** Which upload of which build. */
export interface UploadPlace {
  readonly provider: string;
  readonly image: string;
  readonly build: string;
  readonly upload: string;
}

/** How far a build is. */
export type BuildProgress = Pick<
  ImageWork,
  "phase" | "bytes" | "total" | "bytesPerSecond" | "etaMs" | "elapsedMs"
>;

/** Pools that launchers serve. */
export interface ServedPool {
  readonly provider: string;
  readonly pool: string;
  readonly labels: readonly string[];
}

/** What commands read and change: the tree, or a Nodeyard behind its API. Rows have the keys of `listing`, whatever they are made of. */
export interface Backend {
  /** The time that ages are counted from, milliseconds. */
  now(): number;
  list(name: ListName, ages: Ages): Promise<Rows>;
  /** A row of the list of nodes; undefined: there is no such node. */
  node(id: string, ages: Ages): Promise<Row | undefined>;
  pools(): Promise<readonly ServedPool[]>;
  /** Of all providers that are served, or that anything belongs to. */
  providers(): Promise<readonly string[]>;
  /** Undefined: the diskimage is unknown. */
  image(name: string): Promise<{ readonly paused: boolean } | undefined>;
  /** Of a diskimage, the newest first. */
  builds(image: string): Promise<readonly Build[]>;
  /** How far a build is; undefined: no builder says so. */
  buildProgress(image: string, build: string): Promise<BuildProgress | undefined>;
  /** What the tree has of a provider, configured or not. */
  providerRecords(name: string): Promise<ProviderRecords>;
  explain(subject: Explained): Promise<Explanations>;
  /** Calls `onChange` when any of these has changed. */
  watch(what: readonly Watched[], onChange: () => void): { close(): Promise<void> };

  request(options: AskOptions): Promise<Requested>;
  /** How to reach the nodes of a granted lease. */
  access(lease: Lease): Promise<readonly NodeAccess[]>;
  release(lease: string): Promise<"released" | "unknown">;
  /** Calls `fn` when the connection is lost or back; returns a function that ends that. */
  onConnection(fn: (state: string) => void): () => void;

  hold(node: string, options: { readonly comment: string; readonly forSeconds: number }): Promise<void>;
  /** Marks it for deletion. */
  deleteNode(node: string): Promise<void>;
  /** As `deleteNode`, also of a node that is being deleted; tries at once again what could not be deleted in many tries. */
  deleteNodeNow(node: string): Promise<void>;
  /** Follows a node until it is gone. */
  untilGone(node: string): Gone;
  /** Removes the records of a provider; `force`: also of one that is served, and locked nodes. */
  erase(provider: string, force: boolean): Promise<Erased>;
  /** Returns the ids of the builds that existed before, so that the caller can wait for a new one. */
  requestBuild(image: string): Promise<ReadonlySet<string>>;
  pauseImage(image: string, paused: boolean): Promise<void>;
  /** Marks a build, or an upload, for deletion by builders. */
  deleteBuild(image: string, build: string): Promise<void>;
  deleteUpload(at: UploadPlace): Promise<void>;
  /** Records of images for a restore, by path. */
  exportImages(): Promise<Readonly<Record<string, string>>>;
  importImages(all: ReadonlyMap<string, Uint8Array>): Promise<void>;
  /** Returns the id of the backing node. */
  retire(node: string, why: string): Promise<string>;

  tokens(): Promise<Listing<Omit<Token, "hash" | "created">>>;
  createToken(wanted: NewToken): Promise<{ readonly text: string; readonly expires: number }>;
  revokeToken(name: string, by: string): Promise<void>;
}
