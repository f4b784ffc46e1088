import type { Source, SourceEvent } from "@nodeyard/zookeeper";
import type { CallOptions, Op, OpResult, Session, Stat, TreeCapabilities } from "../contract.ts";
import type { TreeError } from "../errors.ts";

export type PortEvent = SourceEvent;

/** Exactly one of the two is given, except where a read says that "not there" is an answer. */
export type Reply<T> = (error: TreeError | undefined, value: T | undefined) => void;

export interface Found {
  readonly data: Uint8Array;
  readonly stat: Stat;
}

/**
 * A tree at the other end of a connection. Everything that `RemoteTree` and its feeds are correct by is promised here:
 *
 * - calls are carried out in the order in which they were made;
 * - replies and events are delivered synchronously and in the order of the connection, so that an event for a change comes
 *   before every reply that shows the change, and after every reply that does not;
 * - a call that the connection loses is answered with an error before the next connection stands; the session's new state
 *   is told first, so a feed knows by then that there is a gap.
 *
 * Paths and sizes were checked by the caller. A reply may come before the call has returned.
 */
export interface Port extends Source {
  readonly capabilities: TreeCapabilities;
  session(): Session;
  onSession(listener: (session: Session) => void): () => void;
  /** Tree time minus our wall clock, milliseconds. */
  clockOffset(): number;
  /** All or nothing. A refusal of one op alone is that op's own error, of several a CommitFailed. */
  write(ops: readonly Op[], reply: Reply<readonly OpResult[]>, options: CallOptions | undefined): void;
  /** Both undefined: there is no such znode. */
  get(path: string, reply: Reply<Found>, options?: CallOptions): void;
  /** Both undefined: there is no such znode. */
  stat(path: string, reply: Reply<Stat>, options?: CallOptions): void;
  /** Both undefined: there is no such znode. */
  children(path: string, reply: Reply<readonly string[]>, options?: CallOptions): void;
  sync(path: string, reply: Reply<true>, options?: CallOptions): void;
  close(): Promise<void>;
}
