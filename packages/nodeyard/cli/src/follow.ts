import type { Put, RowOf } from "@nodeyard/client";
import { LeaseError } from "@nodeyard/operations";
import type { Backend, LeaseRow } from "./backend/backend.ts";

type NodeRow = RowOf<"list_nodes">;
type RequestRow = RowOf<"list_requests">;

/** Progress of a lease that waits for its nodes, as the last rows have it. */
export interface LeaseProgress {
  readonly lease: LeaseRow;
  /** Undefined before its row was seen, and after the nodes were handed over, when requests are deleted. */
  readonly request: RequestRow | undefined;
  /** Nodes made or taken for it so far, by id. */
  readonly nodes: ReadonlyMap<string, NodeRow>;
}

/** What is waited for by events. */
export interface Following<T> {
  /**
   * Resolves with the lease when it is granted or has failed, with a node when it is gone, also when there was none. Rejects when the lease
   * is taken back before, by `close`, and when the connection is lost for good.
   */
  readonly ended: Promise<T>;
  /** Stops following; twice is safe. */
  close(): Promise<void>;
}

/**
 * Follows a lease by events. Of the nodes only those are shown that are younger than `youngest`: what existed before the request is no progress
 * of it. `onChange` may be called again without a change.
 */
export function followLease(
  backend: Pick<Backend, "events">,
  asked: LeaseRow,
  youngest: string,
  onChange: (progress: LeaseProgress) => void,
): Following<LeaseRow> {
  const nodes = new Map<string, NodeRow>();
  let progress: LeaseProgress = { lease: asked, request: undefined, nodes };

  /** Takes a row that exists; whether anything is to be shown of it. */
  function put(event: Put): boolean {
    if (event.kind === "node") return nodeIs(event.row);
    if (event.kind === "request" && event.id === asked.request)
      progress = { ...progress, request: event.row };
    else if (event.kind === "lease" && event.id === asked.id) progress = { ...progress, lease: event.row };
    else return false;
    return true;
  }

  /** A node that is not allocated to the request any more is no longer shown; other nodes have never been. */
  function nodeIs(row: NodeRow): boolean {
    if (row.id <= youngest) return false;
    if (asked.request === null || row.allocated_to !== asked.request) return nodes.delete(row.id);
    nodes.set(row.id, row);
    return true;
  }

  function removed({ kind, id }: Pick<Put, "kind" | "id">): void {
    if (kind === "lease" && id === asked.id) throw gone(asked.id);
    if (kind === "request" && id === asked.request) progress = { ...progress, request: undefined };
    else if (kind === "node" && nodes.delete(id)) onChange(progress);
  }

  return following(`lease ${asked.id}`, async (signal) => {
    /**
     * A lease that is missing in a complete list is over. That can be judged only at `synced`: after a `gap` the server sends every
     * row again, and the lease may be among the last.
     */
    let isThere = false;
    for await (const event of backend.events({ lease: asked, after: youngest }, signal)) {
      if (event.type === "gap") isThere = false;
      else if (event.type === "synced" && event.complete && !isThere) throw gone(asked.id);
      else if (event.type === "remove") removed(event);
      else if (event.type === "put" && put(event)) {
        isThere ||= event.kind === "lease";
        onChange(progress);
        const { lease } = progress;
        if (lease.state === "granted" || lease.state === "failed") return lease;
        if (lease.state === "released") throw gone(asked.id);
      }
    }
    throw notFollowed(`lease ${asked.id}`);
  });
}

/** Follows a node by events until it is gone. */
export function followNode(backend: Pick<Backend, "events">, id: string): Following<void> {
  return following(`node ${id}`, async (signal) => {
    // As for a lease: that the node is missing can be judged only when all rows have come.
    let isThere = false;
    for await (const event of backend.events({ node: id }, signal)) {
      if (event.type === "put") isThere = true;
      else if (event.type === "gap") isThere = false;
      else if (event.type === "remove" || (event.type === "synced" && event.complete && !isThere)) return;
    }
    throw notFollowed(`node ${id}`);
  });
}

function following<T>(what: string, read: (signal: AbortSignal) => Promise<T>): Following<T> {
  const over = new AbortController();
  // The stream of events ends with the reading.
  const ended = read(over.signal);
  // The caller may still be busy when it rejects; Node.js would end the process for a rejection that nothing handles.
  ended.catch(() => {});
  return {
    ended,
    async close() {
      over.abort(notFollowed(what));
      await ended.catch(() => {});
    },
  };
}

/** The lease ended before it was granted. */
function gone(id: string): LeaseError {
  return new LeaseError("lease.gone", `lease ${id} was released or has expired before its nodes arrived`);
}

/** `Following.ended` after `close`. */
function notFollowed(what: string): LeaseError {
  return new LeaseError("lease.not_followed", `${what} is no longer followed`);
}
