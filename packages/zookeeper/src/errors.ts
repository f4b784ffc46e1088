import { ErrorCode } from "./wire/op-code.ts";

/** Whether an operation that failed may have been applied by the server all the same. */
export type Outcome = "none" | "unknown";

/** What an error says besides its code and message. `outcome` says whether the operation may have been carried out. */
export interface ErrorDetails {
  readonly outcome?: Outcome;
  readonly cause?: unknown;
  /** The operation, by its protocol name. */
  readonly op?: string;
  readonly path?: string;
}

/** Base of everything that this package rejects with. `code` is stable; the message is for people. */
export class ZooKeeperError extends Error {
  readonly code: string;
  readonly outcome: Outcome;
  readonly op: string | undefined;
  readonly path: string | undefined;

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = code;
    this.outcome = details.outcome ?? "none";
    this.op = details.op;
    this.path = details.path;
  }
}

function where(details: ErrorDetails): string {
  const { op, path } = details;
  if (op === undefined) return path ?? "the request";
  return path === undefined ? op : `${op} ${path}`;
}

/** Base class of errors whose message is the operation with its path, and `why`. */
function errorClass(code: string, why: string): new (details?: ErrorDetails) => ZooKeeperError {
  return class extends ZooKeeperError {
    constructor(details: ErrorDetails = {}) {
      super(code, `${where(details)}: ${why}`, details);
    }
  };
}

/** The znode, or the parent of one to be created, does not exist. Nothing was changed. */
export class NoNode extends errorClass("zookeeper.no_node", "the znode does not exist") {}

/** A znode to be created is there already. Nothing was changed. */
export class NodeExists extends errorClass("zookeeper.node_exists", "the znode exists already") {}

/** Somebody else wrote since the version that the operation names. Read again, and decide anew. */
export class BadVersion extends errorClass("zookeeper.bad_version", "the znode has a different version") {}

/** A znode with children is not deleted. Children may have come since they were listed. */
export class NotEmpty extends errorClass("zookeeper.not_empty", "the znode still has children") {}

/** Only znodes that outlive their session can have children. */
export class NoChildrenForEphemerals extends errorClass(
  "zookeeper.no_children_for_ephemerals",
  "the parent is ephemeral and takes no children",
) {}

/** The access list of the znode, or of its parent, denies the operation to the identities of this connection. */
export class NoAuth extends errorClass("zookeeper.no_auth", "the access list does not allow it") {}

/** An access list is empty, or has a scheme or identity that the server does not know. */
export class InvalidAcl extends errorClass("zookeeper.invalid_acl", "the server refuses this access list") {}

/** The operation cannot be carried out as it is written, for instance on an invalid path. Repeating it does not help. */
export class BadArguments extends ZooKeeperError {
  constructor(why: string, details: ErrorDetails = {}) {
    super("zookeeper.bad_arguments", `${where(details)}: ${why}`, details);
  }
}

/** The frame is longer than servers accept (`jute.maxbuffer`); sending it would break the connection for all calls. */
export class TooLarge extends ZooKeeperError {
  constructor(bytes: number, limit: number, details: ErrorDetails = {}) {
    super(
      "zookeeper.too_large",
      `${where(details)}: ${bytes} bytes are more than the ${limit} that one request may have`,
      details,
    );
  }
}

/** A watch to be removed is not set on the server. */
export class NoWatcher extends errorClass("zookeeper.no_watcher", "the server knows of no such watch") {}

/** The server has no such operation, or has it switched off (TTL znodes). */
export class Unimplemented extends errorClass(
  "zookeeper.unimplemented",
  "this server does not know the operation",
) {}

/** A write met a server that has lost its quorum. */
export class NotReadOnly extends errorClass(
  "zookeeper.not_read_only",
  "the server is read-only at present",
) {}

/** A quota on bytes or znodes of a subtree, which ZooKeeper 3.7 and newer can enforce, refuses the write. */
export class QuotaExceeded extends errorClass("zookeeper.quota_exceeded", "a quota of the tree is used up") {}

/** The connection broke before the reply came. */
export class ConnectionLost extends errorClass(
  "zookeeper.connection_lost",
  "the connection broke before the reply came",
) {}

/** The session is over: its ephemeral znodes, locks and one-shot watches are gone. */
export class SessionExpired extends errorClass("zookeeper.session_expired", "the session has expired") {}

/** The server saw the session move to another connection. */
export class SessionMoved extends errorClass(
  "zookeeper.session_moved",
  "the session has moved to another server",
) {}

/** The credentials were refused. The client is closed, because no server would accept them. */
export class AuthFailed extends ZooKeeperError {
  constructor(why: string, details: ErrorDetails = {}) {
    super("zookeeper.auth_failed", `authentication failed: ${why}`, details);
  }
}

/** No reply came before the deadline of the operation. If it was sent, a write may have been carried out (`outcome`). */
export class DeadlineExceeded extends ZooKeeperError {
  constructor(ms: number, details: ErrorDetails = {}) {
    super("zookeeper.deadline_exceeded", `${where(details)}: no reply within ${Math.round(ms)} ms`, details);
  }
}

/** The caller's AbortSignal fired; `cause` is its reason. */
export class Aborted extends errorClass("zookeeper.aborted", "cancelled by the caller") {}

/** More operations wait than `maxQueued` allows. */
export class QueueFull extends ZooKeeperError {
  constructor(limit: number, details: ErrorDetails = {}) {
    super("zookeeper.queue_full", `${where(details)}: ${limit} operations wait already`, details);
  }
}

/** The client was closed by its own process; it does not come back. */
export class Closed extends errorClass("zookeeper.closed", "the client is closed") {}

/** Bytes that are not a message of the protocol. */
export class ProtocolError extends ZooKeeperError {
  constructor(why: string, details: ErrorDetails = {}) {
    super("zookeeper.protocol", `the other side broke the protocol: ${why}`, details);
  }
}

/** Any other refusal of the server, by its number. */
export class ServerError extends ZooKeeperError {
  readonly serverCode: number;
  constructor(serverCode: number, details: ErrorDetails = {}) {
    super(
      "zookeeper.server_error",
      `${where(details)}: the server answered with error ${serverCode}`,
      details,
    );
    this.serverCode = serverCode;
  }
}

/** A multi did nothing because the operation at `index` failed; `cause` is that failure, `failure` the same, typed. */
export class MultiFailed extends ZooKeeperError {
  readonly index: number;
  readonly failure: ZooKeeperError;
  constructor(index: number, failure: ZooKeeperError) {
    super(
      "zookeeper.multi_failed",
      `multi: nothing was done, operation ${index} failed: ${failure.message}`,
      {
        cause: failure,
        op: "multi",
        ...(failure.path === undefined ? {} : { path: failure.path }),
      },
    );
    this.index = index;
    this.failure = failure;
  }
}

const BY_CODE = new Map<number, new (details: ErrorDetails) => ZooKeeperError>([
  [ErrorCode.noNode, NoNode],
  [ErrorCode.nodeExists, NodeExists],
  [ErrorCode.badVersion, BadVersion],
  [ErrorCode.notEmpty, NotEmpty],
  [ErrorCode.noChildrenForEphemerals, NoChildrenForEphemerals],
  [ErrorCode.noAuth, NoAuth],
  [ErrorCode.invalidAcl, InvalidAcl],
  [ErrorCode.noWatcher, NoWatcher],
  [ErrorCode.unimplemented, Unimplemented],
  [ErrorCode.notReadOnly, NotReadOnly],
  [ErrorCode.quotaExceeded, QuotaExceeded],
  [ErrorCode.sessionExpired, SessionExpired],
  [ErrorCode.sessionMoved, SessionMoved],
]);

/** Codes that a server sends although the write may go through afterwards. */
const UNKNOWN_OUTCOME = new Set<number>([
  ErrorCode.connectionLoss,
  ErrorCode.operationTimeout,
  ErrorCode.requestTimeout,
]);

/**
 * The error for a code of the reply header, without a stack: a reply is read far from the call that asked for it, so a stack
 * would show this client alone, and to capture it is most of what a refusal costs.
 */
export function errorFromCode(code: number, details: ErrorDetails = {}): ZooKeeperError {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return errorOf(code, details);
  } finally {
    Error.stackTraceLimit = limit;
  }
}

function errorOf(code: number, details: ErrorDetails): ZooKeeperError {
  const known = BY_CODE.get(code);
  if (known !== undefined) return new known(details);
  if (code === ErrorCode.badArguments) return new BadArguments("the server refuses the arguments", details);
  if (code === ErrorCode.authFailed) return new AuthFailed("the server refuses the credentials", details);
  return new ServerError(code, UNKNOWN_OUTCOME.has(code) ? { ...details, outcome: "unknown" } : details);
}
