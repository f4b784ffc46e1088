import { messageOf, NodeyardError } from "@nodeyard/runtime";

/** Whether a write that failed may have happened all the same. */
export type Outcome = "none" | "unknown";

/** Base of what a tree's methods reject with. */
export class TreeError extends NodeyardError {
  readonly outcome: Outcome;

  constructor(code: string, message: string, options: { outcome?: Outcome; cause?: unknown } = {}) {
    super(code, message, { cause: options.cause });
    this.outcome = options.outcome ?? "none";
  }
}

/** Base class of refusals that are about one znode, and say nothing but its path and why. */
function errorClass(
  code: string,
  why: (path: string) => string,
): new (
  path: string,
  cause?: unknown,
) => TreeError {
  return class extends TreeError {
    constructor(path: string, cause?: unknown) {
      super(code, why(path), { cause });
    }
  };
}

/** The znode, or the parent of one to be created, does not exist. Nothing was changed. */
export class NoNode extends errorClass("tree.no_node", (path) => `${path} does not exist`) {}

/** A znode to be created is there already. Nothing was changed. */
export class NodeExists extends errorClass("tree.node_exists", (path) => `${path} exists already`) {}

/** Somebody else wrote since the version that the operation names. Read again, and decide anew. */
export class BadVersion extends errorClass(
  "tree.bad_version",
  (path) => `${path} was changed by someone else in the meantime`,
) {}

/** A znode with children is not deleted. Children may have come since they were listed. */
export class NotEmpty extends errorClass("tree.not_empty", (path) => `${path} still has children`) {}

/** Only znodes that outlive their session can have children. */
export class NoChildrenForEphemerals extends errorClass(
  "tree.no_children_for_ephemerals",
  (path) => `the parent of ${path} is bound to a session and takes no children`,
) {}

/** An access list, which others have set on the znode, denies the operation. */
export class NotAllowed extends errorClass(
  "tree.not_allowed",
  (path) => `${path}: this session has no right to do that`,
) {}

/** The operation cannot be carried out as it is written. Repeating it does not help. */
export class BadArguments extends TreeError {
  constructor(path: string, why: string, cause?: unknown) {
    super("tree.bad_arguments", `${JSON.stringify(path)}: ${why}`, { cause });
  }
}

/** A write exceeds the size limit of one request. It was not sent. */
export class TooLarge extends TreeError {
  constructor(what: string, bytes: number, limit: number, cause?: unknown) {
    super(
      "tree.too_large",
      `${what}: ${bytes} bytes are more than the ${limit} that one request to the tree may have; write less at once`,
      { cause },
    );
  }
}

/** An access list that this tree does not support; it is refused so that nobody relies on a protection that does not exist. */
export class InvalidAccessList extends TreeError {
  constructor(path: string, why: string) {
    super("tree.invalid_access_list", `the access list of ${path} is refused: ${why}`);
  }
}

/** The connection broke before the reply arrived; a write may have happened. */
export class ConnectionLost extends TreeError {
  constructor(what: string, cause?: unknown, outcome: Outcome = "unknown") {
    super("tree.connection_lost", `connection to the tree lost during ${what}`, { outcome, cause });
  }
}

/** The session ended; its ephemeral znodes are gone. A write in flight may have happened. */
export class SessionExpired extends TreeError {
  constructor(what: string, cause?: unknown, outcome: Outcome = "unknown") {
    super("tree.session_expired", `the session with the tree ended during ${what}`, { outcome, cause });
  }
}

/** The call's deadline or signal ended it. A write that was already sent may have happened. */
export class CallEnded extends TreeError {
  constructor(what: string, outcome: Outcome, cause?: unknown) {
    super("tree.call_ended", `${what} was cancelled before the tree answered`, { outcome, cause });
  }
}

/** The tree, or a feed of it, was closed by its own process. */
export class TreeClosed extends TreeError {
  constructor(what: string, outcome: Outcome = "none", cause?: unknown) {
    super("tree.closed", `${what}: the tree is closed`, { outcome, cause });
  }
}

/** The store itself failed (disk full, corrupt file, unknown server error). */
export class StoreFailed extends TreeError {
  constructor(what: string, outcome: Outcome, cause?: unknown) {
    const why = cause === undefined ? "" : `: ${messageOf(cause)}`;
    super("tree.store_failed", `the tree's store failed during ${what}${why}`, { outcome, cause });
  }
}

/** A commit was refused as a whole because of `ops[index]`; `reason` is that operation's error. */
export class CommitFailed extends TreeError {
  readonly index: number;
  readonly reason: TreeError;

  constructor(index: number, reason: TreeError) {
    super("tree.commit_failed", `commit refused by its operation ${index}: ${reason.message}`, {
      cause: reason,
    });
    this.index = index;
    this.reason = reason;
  }
}
