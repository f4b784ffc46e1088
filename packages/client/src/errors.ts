import { errorClass, NodeyardError } from "@nodeyard/runtime";
import type { Problem } from "./generated/operations.ts";

/**
 * The server refused a call. `code` is one of docs/reference/errors.md and stable; the message is the server's, and names the value, the
 * place and the remedy.
 */
export class CallRefused extends NodeyardError {
  /** Of HTTP. */
  readonly status: number;
  /** Seconds after which the same call may work; undefined where the server does not say. */
  readonly retryAfter: number | undefined;

  constructor({ status, code, detail }: Problem, retryAfter: number | undefined) {
    super(code, detail);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** A call that got no answer of a Nodeyard: `client.unreachable`, `client.timeout`, `client.bad_answer`, `client.bad_address`. */
export class ClientError extends NodeyardError {}

/** Nothing holds the nodes of a lease any more: whoever uses them has to stop. */
export class LeaseLost extends errorClass("client.lease_lost") {}

/** No pool can serve a request for nodes. */
export class LeaseFailed extends errorClass("client.lease_failed") {}
