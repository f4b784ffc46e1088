import { type ErrorDetails, ZooKeeperError } from "../errors.ts";

/** The lock was not won before the deadline. */
export class LockTimeout extends ZooKeeperError {
  constructor(parent: string, ms: number, cause?: unknown) {
    super("zookeeper.lock_timeout", `lock ${parent}: not won within ${Math.round(ms)} ms`, {
      op: "lock",
      path: parent,
      cause,
    });
  }
}

/** Reason of a held lock's `lost` signal: the session of its contender ended, so another client may hold the lock. */
export class LockLost extends ZooKeeperError {
  constructor(contender: string, details: ErrorDetails = {}) {
    super("zookeeper.lock_lost", `lock ${contender}: its session is over`, { ...details, path: contender });
  }
}
