import type { CallOptions, Client, Given, Reply, RowOf, YardEvent } from "@nodeyard/client";
import type { Explained, Listing } from "@nodeyard/operations";
import type { Listed, Served } from "./operations.ts";
import type { Explanations } from "./tree-asks.ts";

/** What a list is watched for: the kinds of REST's events. */
export type Watched = "node" | "request" | "lease" | "image" | "standing";

/** Rows of REST's lists. */
export type LeaseRow = RowOf<"list_leases">;
export type BuildRow = RowOf<"list_builds">;
/** How far a build is. */
export type Progress = NonNullable<BuildRow["progress"]>;
/** What ssh needs of a node. */
export type NodeAccess = Reply<"list_lease_nodes">["items"][number];

/** Rows of a list, and what of it cannot be read. A server names unreadable records only in the list of images; elsewhere `skipped` is empty. */
export interface Rows<T> extends Pick<Listing<T>, "skipped"> {
  readonly rows: readonly T[];
}

/** One node; or a lease with its request, and of the nodes those that are younger than `after`. */
export type Followed = { readonly node: string } | { readonly lease: LeaseRow; readonly after: string };

/**
 * What commands read and change: operations of REST v1, carried out on the tree, or by a Nodeyard behind its API. Both take and give the same,
 * so that a command has one path for its output. Every method may reject: on the tree with TreeError, NodeOperationError,
 * LeaseError and their like, behind the API with CallRefused or ClientError. None retries a change by itself; `withBackend` ends
 * the connection.
 */
export interface Backend {
  /**
   * The time that ages are counted from, milliseconds: the tree's, or of a server this machine's, which may be off by their
   * difference.
   */
  now(): number;
  /** Calls an operation. A change on the tree is noted for the audit under its name. */
  call<Id extends Served>(id: Id, given: Given<Id>, options?: CallOptions): Promise<Reply<Id>>;
  /** The same; empty: there is no such thing, or the caller may not see it. */
  find<Id extends Served>(id: Id, given: Given<Id>): Promise<readonly [] | readonly [Reply<Id>]>;
  /**
   * Reads the whole list, in the order in which it is printed. Filters are applied by the command, which has to know whether a name occurs at
   * all; `only`: of this image alone.
   */
  list<Id extends Listed>(
    id: Id,
    only?: { readonly image: string },
  ): Promise<Rows<Required<Reply<Id>["items"][number]>>>;
  /** How far a build is, by its id in the list; undefined: no builder reports it, or it has ended. */
  progress(image: string, build: string): Promise<Progress | undefined>;
  /** Asks every live launcher and builder, for three seconds at most. */
  explain(subject: Explained): Promise<Explanations>;
  /**
   * Calls `onChange` when any of these may have changed, also once for each record at the start. A connection that is lost is not
   * reported: callers look again from time to time.
   */
  watch(what: readonly Watched[], onChange: () => void): { close(): Promise<void> };
  /** The id of the youngest node that the caller sees, or "": of a request that is made next, all nodes that are made for it are younger. */
  youngestNode(): Promise<string>;
  /** Rows of these things, and their changes, as the events of REST v1. Rejects with the reason of `signal`, and when the connection is lost for good. */
  events(what: Followed, signal: AbortSignal): ReturnType<Client["events"]> | AsyncIterable<YardEvent>;
  /** Calls `fn` with "connected" or another state when the connection is lost or back; returns a function that ends that. */
  onConnection(fn: (state: string) => void): () => void;
}
