import {
  BadArguments,
  BadVersion,
  CallEnded,
  ConnectionLost,
  NoChildrenForEphemerals,
  NodeExists,
  NoNode,
  NotAllowed,
  NotEmpty,
  type Outcome,
  SessionExpired,
  StoreFailed,
  TooLarge,
  TreeClosed,
  type TreeError,
} from "../errors.ts";

/** The common fields of the client's errors. Stable codes distinguish them. */
export interface ClientError extends Error {
  readonly code: string;
  readonly outcome: Outcome;
}

/** Refusals of one operation. Their message names the path; the client's error stays as cause. */
const REFUSALS: Readonly<Record<string, new (path: string, cause: unknown) => TreeError>> = {
  "zookeeper.no_node": NoNode,
  "zookeeper.node_exists": NodeExists,
  "zookeeper.bad_version": BadVersion,
  "zookeeper.not_empty": NotEmpty,
  "zookeeper.no_children_for_ephemerals": NoChildrenForEphemerals,
  "zookeeper.no_auth": NotAllowed,
  "zookeeper.invalid_acl": NotAllowed,
};

/**
 * Translates an error of the client into a `TreeError`; no other place does so. `what` names the call and `path` the znode. `bytes` and
 * `limit` are for the message about a request that was too long. `outcome` overrides the client's outcome, for a write that changes
 * nothing.
 */
export function treeError(
  error: ClientError,
  what: string,
  path: string,
  bytes: number,
  limit: number,
  outcome: Outcome = error.outcome,
): TreeError {
  const Refusal = REFUSALS[error.code];
  if (Refusal !== undefined) return new Refusal(path, error);
  switch (error.code) {
    case "zookeeper.bad_arguments":
      return new BadArguments(path, "the tree refuses the arguments", error);
    case "zookeeper.too_large":
      return new TooLarge(what, bytes, limit, error);
    case "zookeeper.connection_lost":
    case "zookeeper.session_moved":
      return new ConnectionLost(what, error, outcome);
    case "zookeeper.session_expired":
      return new SessionExpired(what, error, outcome);
    case "zookeeper.deadline_exceeded":
      return new CallEnded(what, outcome, error);
    case "zookeeper.aborted":
      return new CallEnded(what, outcome, error.cause ?? error);
    case "zookeeper.closed":
      return new TreeClosed(what, outcome, error);
    default:
      return new StoreFailed(what, outcome, error);
  }
}
