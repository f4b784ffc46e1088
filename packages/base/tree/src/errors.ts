import { messageOf, NodeyardError } from "@nodeyard/runtime";

/** Whether a failed write may have been applied anyway. */
export type Outcome = "none" | "unknown";

/** Base class of all errors with which a tree's methods reject. */
export class TreeError extends NodeyardError {
  readonly outcome: Outcome;

  constructor(code: string, message: string, options: { outcome?: Outcome; cause?: unknown } = {}) {
    super(code, message, { cause: options.cause });
    this.outcome = options.outcome ?? "none";
  }
}

/** A refusal that concerns one znode. */
class Refusal extends TreeError {
  readonly path: string;

  constructor(code: string, path: string, why: string, cause: unknown) {
    super(code, why, { cause });
    this.path = path;
  }
}

function errorClass(
  code: string,
  why: (path: string) => string,
): new (
  path: string,
  cause?: unknown,
) => Refusal {
  return class extends Refusal {
    constructor(path: string, cause?: unknown) {
      super(code, path, why(path), cause);
    }
  };
}

/** The znode, or the parent of a znode to be created, does not exist. Nothing was changed. */
export class NoNode extends errorClass("tree.no_node", (path) => `${path} does not exist`) {}

/** A znode to be created exists already. Nothing was changed. */
export class NodeExists extends errorClass("tree.node_exists", (path) => `${path} exists already`) {}

/** Another process wrote the znode after the version that the operation names. Read it again and decide again. */
export class BadVersion extends errorClass(
  "tree.bad_version",
  (path) => `${path} was changed by someone else in the meantime`,
) {}

/** The znode to be deleted has children. Another process may have created them since they were listed. */
export class NotEmpty extends errorClass("tree.not_empty", (path) => `${path} still has children`) {}

/** The parent is ephemeral; only persistent znodes can have children. */
export class NoChildrenForEphemerals extends errorClass(
  "tree.no_children_for_ephemerals",
  (path) => `the parent of ${path} is bound to a session and takes no children`,
) {}

/** The access list of the znode, which another client has set, denies the operation. */
export class NotAllowed extends errorClass(
  "tree.not_allowed",
  (path) => `${path}: this session has no right to do that`,
) {}

/** The operation is invalid as written. A retry does not help. */
export class BadArguments extends TreeError {
  constructor(path: string, why: string, cause?: unknown) {
    super("tree.bad_arguments", `${JSON.stringify(path)}: ${why}`, { cause });
  }
}

/** The write exceeds the size limit of one request. It was not sent. */
export class TooLarge extends TreeError {
  constructor(what: string, bytes: number, limit: number, cause?: unknown) {
    super(
      "tree.too_large",
      `${what}: ${bytes} bytes are more than the ${limit} that one request to the tree may have; write less at once`,
      { cause },
    );
  }
}

/** This process opened the tree for reading alone. The write was not sent. */
export class ReadsOnly extends TreeError {
  constructor(what: string) {
    super("tree.reads_only", `${what}: this process only reads the tree`);
  }
}

/** The tree does not support this access list. It refuses the list, so that no client relies on protection that does not exist. */
export class InvalidAccessList extends TreeError {
  constructor(path: string, why: string) {
    super("tree.invalid_access_list", `the access list of ${path} is refused: ${why}`);
  }
}

/** The connection broke before the reply arrived. A write may have been applied. */
export class ConnectionLost extends TreeError {
  constructor(what: string, cause?: unknown, outcome: Outcome = "unknown") {
    super("tree.connection_lost", `connection to the tree lost during ${what}`, { outcome, cause });
  }
}

/** The session ended and its ephemeral znodes are gone. A write in flight may have been applied. */
export class SessionExpired extends TreeError {
  constructor(what: string, cause?: unknown, outcome: Outcome = "unknown") {
    super("tree.session_expired", `the session with the tree ended during ${what}`, { outcome, cause });
  }
}

/** The call's deadline passed or its signal fired. A write that was sent may have been applied. */
export class CallEnded extends TreeError {
  constructor(what: string, outcome: Outcome, cause?: unknown) {
    super("tree.call_ended", `${what} was cancelled before the tree answered`, { outcome, cause });
  }
}

/** This process has closed the tree or the feed. */
export class TreeClosed extends TreeError {
  constructor(what: string, outcome: Outcome = "none", cause?: unknown) {
    super("tree.closed", `${what}: the tree is closed`, { outcome, cause });
  }
}

/** The store failed (disk full, damaged file, unknown error of the server). */
export class StoreFailed extends TreeError {
  constructor(what: string, outcome: Outcome, cause?: unknown) {
    const why = cause === undefined ? "" : `: ${messageOf(cause)}`;
    super("tree.store_failed", `the tree's store failed during ${what}${why}`, { outcome, cause });
  }
}

/** A commit was refused because of `ops[index]`; `reason` is the error of that operation. Nothing was changed. */
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

/**
 * Whether a write, alone or in a commit, was refused with this code because of the znode at `path`: for a create without a parent that is the
 * parent. A caller of several operations thus asks for what it checked, and not for its place in the commit.
 */
export function isRefused(error: unknown, code: string, path: string): boolean {
  const reason = error instanceof CommitFailed ? error.reason : error;
  return reason instanceof Refusal && reason.code === code && reason.path === path;
}
