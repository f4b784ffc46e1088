import type { Client, Put, RowOf } from "@nodeyard/client";
import type { Lease } from "@nodeyard/model";
import { type Following, LeaseError, type LeaseProgress } from "../../operations/index.ts";
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
  const over = new AbortController();
  const ended = Promise.withResolvers<Lease>();
  ended.promise.catch(() => {});
  const gone = () =>
    new LeaseError("lease.gone", `lease ${asked.id} was released or has expired before its nodes arrived`);
  const nodes = new Map<string, ReturnType<typeof progressNode>>();
  let progress: LeaseProgress = { lease: asked, request: undefined, nodes };

  async function read(): Promise<void> {
    let isThere = false;
    // Rows without a key pass its filter: the one is of nodes, the other of requests and leases.
    const labels = [...new Set(asked.labels)].join(",");
    const query = { kinds: "lease,request,node", label: labels, labels };
    for await (const event of client.events(query, { signal: over.signal })) {
      if (event.type === "put") isThere = put(event) || isThere;
      else if (event.type === "remove") removed(event.kind, event.id);
      else if (event.type === "gap") isThere = false;
      else if (event.type === "synced" && event.complete && !isThere) ended.reject(gone());
    }
  }

  /** Whether it is the lease itself. */
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
    else if (lease.state === "released") ended.reject(gone());
  }

  function nodeIs(row: RowOf<"list_nodes">): void {
    if (row.id <= youngest) return;
    if (row.allocated_to === asked.request) nodes.set(row.id, progressNode(row));
    else if (!nodes.delete(row.id)) return;
    onChange(progress);
  }

  function removed(kind: string, id: string): void {
    if (kind === "lease" && id === asked.id) ended.reject(gone());
    else if (kind === "request" && id === asked.request) progress = { ...progress, request: undefined };
    else if (kind === "node" && nodes.delete(id)) onChange(progress);
  }

  const reading = read().catch(ended.reject);
  return {
    ended: ended.promise,
    async close() {
      const error = new LeaseError("lease.not_followed", `lease ${asked.id} is no longer followed`);
      ended.reject(error);
      over.abort(error);
      await reading;
    },
  };
}

/** Follows a node by the events of a server until it is gone. */
export function goneByEvents(client: Client, id: string): Gone {
  const over = new AbortController();
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
