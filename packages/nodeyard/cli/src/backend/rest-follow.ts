import type { Client, Put, RowOf } from "@nodeyard/client";
import type { Lease } from "@nodeyard/model";
import { type Following, type LeaseProgress, leaseGone, notFollowed } from "@nodeyard/operations";
import type { Gone } from "./backend.ts";
import { leaseOf, progressNode } from "./rest-rows.ts";

/**
 * Follows a lease by the events of a server. Of the nodes only those are shown that are younger than `youngest`, as the command line does on
 * the tree.
 */
export function followByEvents(
  client: Client,
  asked: Lease,
  youngest: string,
  onChange: (progress: LeaseProgress) => void,
): Following {
  /** Ends the stream of events when the caller closes it. */
  const over = new AbortController();
  const ended = Promise.withResolvers<Lease>();
  // The caller may still be busy when it rejects; Node.js would end the process for a rejection that nothing handles.
  ended.promise.catch(() => {});
  const nodes = new Map<string, ReturnType<typeof progressNode>>();
  let progress: LeaseProgress = { lease: asked, request: undefined, nodes };

  /**
   * A lease that is missing in a complete list is over. That can be judged only at `synced`: after a `gap` the server sends every
   * row again, and the lease may be among the last.
   */
  async function read(): Promise<void> {
    let isThere = false;
    // Rows without a key pass its filter: `label` is of nodes, `labels` of requests and leases. Without them a busy yard would
    // send every change.
    const labels = [...new Set(asked.labels)].join(",");
    const query = { kinds: "lease,request,node", label: labels, labels };
    for await (const event of client.events(query, { signal: over.signal })) {
      if (event.type === "put") isThere = put(event) || isThere;
      else if (event.type === "remove") removed(event.kind, event.id);
      else if (event.type === "gap") isThere = false;
      else if (event.type === "synced" && event.complete && !isThere) ended.reject(leaseGone(asked.id));
    }
  }

  /** Takes a row that exists; returns whether it is the lease itself. */
  function put(event: Put): boolean {
    if (event.kind === "node") nodeIs(event.row);
    else if (event.kind === "request" && event.id === asked.request) {
      const { id, state, declined_by: declinedBy } = event.row;
      progress = { ...progress, request: { id, state, declinedBy } };
      onChange(progress);
    } else if (event.kind === "lease" && event.id === asked.id) {
      leaseIs(leaseOf(event.row));
      return true;
    }
    return false;
  }

  function leaseIs(lease: Lease): void {
    progress = { ...progress, lease };
    onChange(progress);
    if (lease.state === "granted" || lease.state === "failed") ended.resolve(lease);
    else if (lease.state === "released") ended.reject(leaseGone(asked.id));
  }

  /** A node that is not allocated to the request any more is no longer shown; other nodes have never been. */
  function nodeIs(row: RowOf<"list_nodes">): void {
    if (row.id <= youngest) return;
    if (row.allocated_to === asked.request) nodes.set(row.id, progressNode(row));
    else if (!nodes.delete(row.id)) return;
    onChange(progress);
  }

  function removed(kind: string, id: string): void {
    if (kind === "lease" && id === asked.id) ended.reject(leaseGone(asked.id));
    else if (kind === "request" && id === asked.request) progress = { ...progress, request: undefined };
    else if (kind === "node" && nodes.delete(id)) onChange(progress);
  }

  const reading = read().catch(ended.reject);
  return {
    ended: ended.promise,
    async close() {
      // Rejects first: an abort of the stream ends `read` with another error, and the first rejection is the one that counts.
      const error = notFollowed(asked.id);
      ended.reject(error);
      over.abort(error);
      await reading;
    },
  };
}

/** Follows a node by the events of a server until it is gone. */
export function goneByEvents(client: Client, id: string): Gone {
  const over = new AbortController();
  // As for a lease: that the node is missing can be judged only when all rows have come.
  async function read(): Promise<void> {
    let isThere = false;
    for await (const event of client.events({ kinds: "node", id }, { signal: over.signal })) {
      if (event.type === "put") isThere = true;
      else if (event.type === "gap") isThere = false;
      else if (event.type === "remove" || (event.type === "synced" && event.complete && !isThere)) return;
    }
    throw new Error(`node ${id} is no longer followed`);
  }
  const done = read().finally(() => over.abort());
  done.catch(() => {});
  return {
    done,
    async close() {
      over.abort();
      await done.catch(() => {});
    },
  };
}
