import type { ErrorDetails, ZooKeeperError } from "../errors.ts";
import type { Request, Response } from "../wire/messages.ts";
import { OpCode, opName } from "../wire/op-code.ts";

export type ReplyCallback = (error: ZooKeeperError | undefined, response: Response | undefined) => void;

/** Any session will do. */
export const ANY_EPOCH = -1;

/** An operation between its call and its end. */
export class Pending {
  readonly request: Request;
  readonly timeoutMs: number;
  /** Monotonic time at which it ends without a reply. */
  readonly deadline: number;
  readonly epoch: number;
  xid = 0;
  /** Monotonic time of the turn that sent it; NaN while it waits. */
  sentAt = Number.NaN;
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

  /** Its caller has its answer; a reply that still comes is only counted. */
  get settled(): boolean {
    return this.#onReply === undefined;
  }

  /** Hands the outcome to the caller, the first time only. */
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

  /** What an error should say of it. `outcome` is "unknown" for writes that were sent. */
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

/** A listener that throws is a bug of its owner: it must surface, but not break the connection of everybody else. */
export function surface(thrown: unknown): void {
  queueMicrotask(() => {
    throw thrown;
  });
}

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
