import type { ErrorDetails, ZooKeeperError } from "../errors.ts";
import type { Request, Response } from "../wire/messages.ts";
import { OpCode, opName } from "../wire/op-code.ts";

export type ReplyCallback = (error: ZooKeeperError | undefined, response: Response | undefined) => void;

/** The operation may be sent in any session. */
export const ANY_EPOCH = -1;

/** An operation from its call to its outcome. */
export class Pending {
  readonly request: Request;
  /** Milliseconds that the caller gave it, for the message of DeadlineExceeded. */
  readonly timeoutMs: number;
  /** Monotonic time at which the operation fails without a reply. */
  readonly deadline: number;
  /** The session in which alone it may be sent, or ANY_EPOCH. */
  readonly epoch: number;
  /** Its number on its connection; 0 while it waits. */
  xid = 0;
  /** Monotonic time of the turn of the event loop that sent it; NaN while it waits. */
  sentAt = Number.NaN;
  /** With `onAbort`, the caller's signal and our listener on it, which is removed when the operation ends. */
  signal: AbortSignal | undefined;
  onAbort: (() => void) | undefined;
  #onReply: ReplyCallback | undefined;

  constructor(request: Request, onReply: ReplyCallback, deadline: number, timeoutMs: number, epoch: number) {
    this.request = request;
    this.#onReply = onReply;
    this.deadline = deadline;
    this.timeoutMs = timeoutMs;
    this.epoch = epoch;
  }

  /** The caller already has an outcome. A reply that still arrives is only counted. */
  get settled(): boolean {
    return this.#onReply === undefined;
  }

  /** Passes the outcome to the caller; only the first call has an effect. */
  settle(error: ZooKeeperError | undefined, response: Response | undefined): void {
    const onReply = this.#onReply;
    if (onReply === undefined) return;
    this.#onReply = undefined;
    if (this.onAbort !== undefined) this.signal?.removeEventListener("abort", this.onAbort);
    try {
      onReply(error, response);
    } catch (thrown) {
      surface(thrown);
    }
  }

  /** Details for an error about this operation. `outcome` is "unknown" for a write that was sent. */
  details(cause?: unknown): ErrorDetails {
    const { request } = this;
    const sent = !Number.isNaN(this.sentAt);
    return {
      op: opName(request.type),
      outcome: sent && isWrite(request.type) ? "unknown" : "none",
      ...("path" in request ? { path: request.path } : {}),
      ...(cause === undefined ? {} : { cause }),
    };
  }
}

/** Rethrows an error of a listener as an uncaught exception: the bug must become visible, but must not break the connection. */
export function surface(thrown: unknown): void {
  queueMicrotask(() => {
    throw thrown;
  });
}

/** Operations after which the tree may have changed although no reply came. */
const WRITES = new Set<number>([
  OpCode.create,
  OpCode.create2,
  OpCode.createContainer,
  OpCode.createTtl,
  OpCode.delete,
  OpCode.setData,
  OpCode.setAcl,
  OpCode.multi,
]);

function isWrite(type: number): boolean {
  return WRITES.has(type);
}
