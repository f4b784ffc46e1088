import { errorClass, NodeyardError } from "@nodeyard/runtime";
import type { Problem } from "./generated/operations.ts";

/**
 * The server refused a call. `code` is stable and listed in docs/reference/errors.md. The message is the server's, with the value, the
 * place and the remedy.
 */
export class CallRefused extends NodeyardError {
  /** HTTP status. */
  readonly status: number;
  /** Seconds after which the call may succeed; undefined when the server does not say. */
  readonly retryAfter: number | undefined;

  constructor({ status, code, detail }: Problem, retryAfter: number | undefined) {
    super(code, detail);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** A call without an answer from Nodeyard: `client.unreachable`, `client.timeout`, `client.bad_answer`, `client.bad_address`. */
export class ClientError extends NodeyardError {}

/** The lease has ended, so its nodes may already belong to someone else. Users of the nodes must stop. */
export class LeaseLost extends errorClass("client.lease_lost") {}

/** No pool can serve a request for nodes. */
export class LeaseFailed extends errorClass("client.lease_failed") {}
