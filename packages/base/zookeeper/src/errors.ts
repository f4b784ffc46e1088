import { ErrorCode } from "./wire/op-code.ts";

/** Whether the server may have applied an operation that failed: "unknown" when no reply came. */
export type Outcome = "none" | "unknown";

/** Details of an error besides its code and message. */
export interface ErrorDetails {
  readonly outcome?: Outcome;
  readonly cause?: unknown;
  /** The operation, by its protocol name. */
  readonly op?: string;
  readonly path?: string;
}

/** Base class of this package's errors. `code` is stable; the message is for people. */
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

/** Base class of errors whose message is the operation, its path and `why`. */
function errorClass(code: string, why: string): new (details?: ErrorDetails) => ZooKeeperError {
  return class extends ZooKeeperError {
    constructor(details: ErrorDetails = {}) {
      super(code, `${where(details)}: ${why}`, details);
    }
  };
}

/** The znode, or the parent of a znode to be created, does not exist. Nothing was changed. */
export class NoNode extends errorClass("zookeeper.no_node", "the znode does not exist") {}

/** A znode to be created exists already. Nothing was changed. */
export class NodeExists extends errorClass("zookeeper.node_exists", "the znode exists already") {}

/** Another client wrote the znode after the version that the operation names. Read it again and decide again. */
export class BadVersion extends errorClass("zookeeper.bad_version", "the znode has a different version") {}

/** The znode to be deleted has children. Another client may have created them since they were listed. */
export class NotEmpty extends errorClass("zookeeper.not_empty", "the znode still has children") {}

/** The parent is ephemeral; ZooKeeper allows children only below persistent znodes. */
export class NoChildrenForEphemerals extends errorClass(
  "zookeeper.no_children_for_ephemerals",
  "the parent is ephemeral and takes no children",
) {}

/** The access list of the znode, or of its parent, denies the operation to the identities of this connection. */
export class NoAuth extends errorClass("zookeeper.no_auth", "the access list does not allow it") {}

/** The access list is empty, or contains a scheme or identity that the server does not know. */
export class InvalidAcl extends errorClass("zookeeper.invalid_acl", "the server refuses this access list") {}

/** The operation is invalid as written, for instance because of its path. A retry does not help. */
export class BadArguments extends ZooKeeperError {
  constructor(why: string, details: ErrorDetails = {}) {
    super("zookeeper.bad_arguments", `${where(details)}: ${why}`, details);
  }
}

/**
 * The request is longer than servers accept (`jute.maxbuffer`). Sending it would make the server close the connection for all operations.
 */
export class TooLarge extends ZooKeeperError {
  constructor(bytes: number, limit: number, details: ErrorDetails = {}) {
    super(
      "zookeeper.too_large",
      `${where(details)}: ${bytes} bytes are more than the ${limit} that one request may have`,
      details,
    );
  }
}

/** The watch to be removed is not set on the server. */
export class NoWatcher extends errorClass("zookeeper.no_watcher", "the server knows of no such watch") {}

/** The server does not know the operation, or has it disabled (TTL znodes). */
export class Unimplemented extends errorClass(
  "zookeeper.unimplemented",
  "this server does not know the operation",
) {}

/** A write reached a server that has lost its quorum. */
export class NotReadOnly extends errorClass(
  "zookeeper.not_read_only",
  "the server is read-only at present",
) {}

/** The write exceeds a quota on bytes or znodes of a subtree, which ZooKeeper 3.7 and newer can enforce. */
export class QuotaExceeded extends errorClass("zookeeper.quota_exceeded", "a quota of the tree is used up") {}

/** The connection broke before the reply came. */
export class ConnectionLost extends errorClass(
  "zookeeper.connection_lost",
  "the connection broke before the reply came",
) {}

/** The session expired: the server has deleted its ephemeral znodes, its locks and its one-shot watches. */
export class SessionExpired extends errorClass("zookeeper.session_expired", "the session has expired") {}

/** The server answered that another connection has taken over the session. */
export class SessionMoved extends errorClass(
  "zookeeper.session_moved",
  "the session has moved to another server",
) {}

/** The server refused the credentials. The client closes, because every server would refuse them. */
export class AuthFailed extends ZooKeeperError {
  constructor(why: string, details: ErrorDetails = {}) {
    super("zookeeper.auth_failed", `authentication failed: ${why}`, details);
  }
}

/**
 * The server closes each connection of this client, because its newest change is older than one that the client has seen: its data was lost, or
 * restored from a copy. The client tries on, since the data may come back; otherwise only a new client can connect.
 */
export class DataLost extends ZooKeeperError {
  constructor(place: string, theirs: bigint, seen: bigint) {
    super(
      "zookeeper.data_lost",
      `${place}: its newest change is 0x${theirs.toString(16)}, and this client has seen 0x${seen.toString(16)}: its data was lost, or restored from a copy`,
    );
  }
}

/** No reply arrived before the operation's deadline. A write that was sent may have been applied (see `outcome`). */
export class DeadlineExceeded extends ZooKeeperError {
  constructor(ms: number, details: ErrorDetails = {}) {
    super("zookeeper.deadline_exceeded", `${where(details)}: no reply within ${Math.round(ms)} ms`, details);
  }
}

/** The caller's AbortSignal fired; `cause` is its reason. */
export class Aborted extends errorClass("zookeeper.aborted", "cancelled by the caller") {}

/** `maxQueued` operations wait already. */
export class QueueFull extends ZooKeeperError {
  constructor(limit: number, details: ErrorDetails = {}) {
    super("zookeeper.queue_full", `${where(details)}: ${limit} operations wait already`, details);
  }
}

/** The client was closed by its own process. It does not reconnect. */
export class Closed extends errorClass("zookeeper.closed", "the client is closed") {}

/** Received bytes are not a valid message of the protocol. */
export class ProtocolError extends ZooKeeperError {
  constructor(why: string, details: ErrorDetails = {}) {
    super("zookeeper.protocol", `the other side broke the protocol: ${why}`, details);
  }
}

/** The server refused the operation with an error code that has no class of its own. */
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

/** A multi changed nothing because the operation at `index` failed. `failure` (also `cause`) is the error of that operation. */
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

/** Codes with which the server answers although it may still apply the write. */
const UNKNOWN_OUTCOME = new Set<number>([
  ErrorCode.connectionLoss,
  ErrorCode.operationTimeout,
  ErrorCode.requestTimeout,
]);

/**
 * The error for a code of the reply header, without a stack trace. The reply is read far from the call that sent the request, so a
 * trace would show only this client's internals, and capturing it is most of the cost of an error reply.
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
