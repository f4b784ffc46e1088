import {
  decodeLease,
  decodeNode,
  decodeRequest,
  type Lease,
  leasePath,
  type NodeRecord,
  paths,
  type RequestRecord,
} from "@nodeyard/model";
import { type Change, type Feed, orUndefined } from "@nodeyard/tree";
import type { OperationHandles } from "./handles.ts";
import { LeaseError } from "./request.ts";

/** Progress of a lease that waits for its nodes, as its records have it. */
export interface LeaseProgress {
  readonly lease: Lease;
  /** Undefined before its record was seen, and after the nodes were handed over, when requests are deleted. */
  readonly request: Pick<RequestRecord, "id" | "state" | "declinedBy"> | undefined;
  /** Nodes made or taken for it so far, by id. */
  readonly nodes: ReadonlyMap<string, Pick<NodeRecord, "id" | "state" | "type" | "provider" | "pool">>;
}

/** A lease that is waited for by events. */
export interface Following {
  /** Resolves with the lease when it is granted or has failed; rejects when it is taken back before, or by `close`. */
  readonly ended: Promise<Lease>;
  /** Ends the feeds. Twice is safe. `ended` rejects then, unless it has settled. */
  close(): Promise<void>;
}

/**
 * Follows a lease by events, from its record, its request and the records of nodes. Of the nodes only those are read that are
 * younger than `firstNode`: older ones that are reused for it appear when it is granted, and reading all of them would cost as
 * much as a list. `onChange` may be called again without a change.
 */
export function followLease(
  { tree }: Pick<OperationHandles, "tree">,
  asked: Lease,
  firstNode: string,
  onChange: (progress: LeaseProgress) => void,
): Following {
  const places = { lease: leasePath(asked.id), request: paths.request(asked.request ?? "") };
  const nodes = new Map<string, NodeRecord>();
  const ended = Promise.withResolvers<Lease>();
  ended.promise.catch(() => {});
  let leaseSeen = false;
  let progress: LeaseProgress = { lease: asked, request: undefined, nodes };

  function take(change: Change): void {
    if (change.type === "remove") removed(change.path);
    else if (change.type === "put" && change.data !== undefined) put(change.path, change.data);
  }

  function put(path: string, data: Uint8Array): void {
    try {
      if (path === places.lease) {
        leaseSeen = true;
        progress = { ...progress, lease: decodeLease(asked.id, data) };
      } else if (path === places.request)
        progress = { ...progress, request: decodeRequest(asked.request ?? "", data) };
      else if (!putNode(nameOf(path), data)) return;
    } catch {
      // The launcher reports an unreadable record; here there is nothing to show.
      return;
    }
    onChange(progress);
    const { state } = progress.lease;
    if (state === "granted" || state === "failed") ended.resolve(progress.lease);
    else if (state === "released") ended.reject(leaseGone(asked.id));
  }

  function putNode(id: string, data: Uint8Array): boolean {
    const node = decodeNode(id, data);
    if (node.allocatedTo !== asked.request) return nodes.delete(id);
    nodes.set(id, node);
    return true;
  }

  function removed(path: string): void {
    // A launcher deletes the record of a lease that has ended.
    if (path === places.lease) ended.reject(leaseGone(asked.id));
    else if (path === places.request) progress = { ...progress, request: undefined };
    else if (nodes.delete(nameOf(path))) onChange(progress);
  }

  const interest = (path: string) => {
    if (path === places.lease || path === places.request) return "data";
    return path.startsWith(`${paths.nodes}/`) && isRecord(path) && nameOf(path) > firstNode ? "data" : "none";
  };
  const feeds: Feed[] = [places.lease, places.request, paths.nodes].map((root) =>
    tree.feed(root, { interest, onChange: take }),
  );
  for (const feed of feeds) feed.synced.catch(ended.reject);
  // A lease that ended before the walk came by was never reported, so that nothing takes it back.
  feeds[0]!.synced.then(
    () => leaseSeen || ended.reject(leaseGone(asked.id)),
    () => {},
  );
  return {
    ended: ended.promise,
    async close() {
      ended.reject(notFollowed(asked.id));
      await Promise.all(feeds.map((feed) => feed.close()));
    },
  };
}

/**
 * The id of the youngest node there is, or "" when there is none. Ids are sequence numbers of one counter, so a later node is
 * greater.
 */
export async function youngestNode({ tree }: Pick<OperationHandles, "tree">): Promise<string> {
  const ids = (await orUndefined(tree.children(paths.nodes))) ?? [];
  return [...ids].sort().at(-1) ?? "";
}

function isRecord(path: string): boolean {
  return path.indexOf("/", paths.nodes.length + 1) === -1;
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** A lease that is followed ended before it was granted. */
export function leaseGone(id: string): LeaseError {
  return new LeaseError("lease.gone", `lease ${id} was released or has expired before its nodes arrived`);
}

/** `Following.ended` after `close`. */
export function notFollowed(id: string): LeaseError {
  return new LeaseError("lease.not_followed", `lease ${id} is no longer followed`);
}
