import type { Source, SourceEvent } from "@nodeyard/zookeeper";
import type { CallOptions, Op, OpResult, Session, Stat, TreeCapabilities } from "../contract.ts";
import type { TreeError } from "../errors.ts";

export type PortEvent = SourceEvent;

/** Called once for each call. Exactly one of the two is given. Reads give neither when the znode does not exist. */
export type Reply<T> = (error: TreeError | undefined, value: T | undefined) => void;

export interface Found {
  readonly data: Uint8Array;
  readonly stat: Stat;
}

/**
 * A tree at the other end of a connection. `RemoteTree` and its feeds rely on these guarantees:
 *
 * - Calls are carried out in the order in which they were made.
 * - Replies and events are delivered synchronously and in the order of the connection. So the event of a change comes before
 *   every reply that shows the change, and after every reply that does not.
 * - A call that is lost with its connection is answered with an error before the next connection stands. The session's new
 *   state is reported first, so feeds know of the gap by then.
 *
 * The caller has checked paths and sizes. A reply may come before the call returns.
 */
export interface Port extends Source {
  readonly capabilities: TreeCapabilities;
  session(): Session;
  /**
   * Called with each change of state or epoch; of a lost connection before the calls on it fail. Returns a function that unsubscribes.
   */
  onSession(listener: (session: Session) => void): () => void;
  /** Tree time minus this process's wall clock, in milliseconds. */
  clockOffset(): number;
  /** Applies all or none. A single operation that is refused yields its own error, several yield a CommitFailed. */
  write(ops: readonly Op[], reply: Reply<readonly OpResult[]>, options: CallOptions | undefined): void;
  /** Both arguments are undefined when the znode does not exist. */
  get(path: string, reply: Reply<Found>, options?: CallOptions): void;
  /** Both arguments are undefined when the znode does not exist. */
  stat(path: string, reply: Reply<Stat>, options?: CallOptions): void;
  /** Both arguments are undefined when the znode does not exist. */
  children(path: string, reply: Reply<readonly string[]>, options?: CallOptions): void;
  /** The reply comes when every write that was acknowledged to any client before the call is visible on this connection. */
  sync(path: string, reply: Reply<true>, options?: CallOptions): void;
  /** Ends the session, so that its ephemeral znodes go at once. Calls without an answer fail with TreeClosed. */
  close(): Promise<void>;
}
