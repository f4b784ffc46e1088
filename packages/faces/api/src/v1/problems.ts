import { RecordError } from "@nodeyard/model";
import { messageOf, NodeyardError } from "@nodeyard/runtime";
import { z } from "zod";
import { bearerOf } from "../http/caller.ts";

/**
 * A call that cannot be answered as it was made; `code` and message are the caller's to read, so they name nothing that it may
 * not see.
 */
export class ApiError extends NodeyardError {
  readonly status: number;
  /** Seconds after which the same call may work. */
  readonly retryAfter: number | undefined;

  constructor(status: number, code: string, message: string, retryAfter?: number) {
    super(code, message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** A thing that does not exist or that the caller may not see; both get the same answer. */
export function notFound(what: string): ApiError {
  return new ApiError(404, "api.not_found", `there is no ${what} that this client may see`);
}

/** The caller presented no valid credentials. `shown`: its header `Authorization`. */
export function noToken(shown: string | undefined): ApiError {
  const make = '"nodeyard token create" makes one';
  if (shown === undefined)
    return new ApiError(401, "api.no_token", `send a token: Authorization: Bearer TOKEN; ${make}`);
  if (bearerOf(shown) === "")
    return new ApiError(
      401,
      "api.bad_token",
      "the header Authorization has no token: send Bearer TOKEN in it",
    );
  return new ApiError(
    401,
    "api.bad_token",
    `the token is not known here, has expired or was revoked: "nodeyard token list" shows those that there are, ${make}`,
  );
}

/** The body of every error (RFC 9457). */
export const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  /** For programs. */
  code: z.string(),
  /** For people: the value, the place, and what to do. */
  detail: z.string(),
});
export type Problem = z.infer<typeof problemSchema>;

/** Titles of the statuses that there are: the reason phrases of RFC 9110, RFC 6585 for 429 and 431. */
export const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  503: "Service Unavailable",
};

/**
 * Statuses of errors that operations reject with, by code or by its first word. 400: the call is wrong. 409: the world is not as
 * it assumes. 503: try again. A code that is missing here is an internal error.
 */
const STATUSES: Readonly<Record<string, number>> = {
  "operation.no_node": 404,
  "operation.no_image": 404,
  "operation.bad_node_id": 400,
  "operation.bad_export": 400,
  operation: 409,
  "slot.no_such_node": 404,
  slot: 409,
  lease: 409,
  "lease.strange_rule": 400,
  "token.unknown": 404,
  "token.exists": 409,
  token: 400,
  record: 409,
  "process.no_such_provider": 400,
  "process.no_installation": 503,
  // A name that no znode can have.
  "tree.bad_arguments": 400,
  "tree.too_large": 413,
  tree: 503,
  "api.not_ready": 503,
  "api.issuer_away": 503,
};

/** Why a body was not read, by status. */
const BODY_FAULTS: Readonly<Record<number, string>> = {
  413: "the body is longer than this route reads, which is 64 KiB for all but an import of image data: ask for less at once",
  415: "the body is of another type than this route reads: send JSON, with the header Content-Type: application/json",
};

/** The problem for an expected error; undefined for others, whose text goes to the log only. */
export function problemOf(error: unknown): Problem | undefined {
  if (error instanceof ApiError) return problem(error.status, error.code, error.message);
  const { code = "", statusCode } = error as { code?: string; statusCode?: number };
  if (error instanceof NodeyardError || error instanceof RecordError) {
    const status = STATUSES[code] ?? STATUSES[code.slice(0, code.indexOf("."))];
    return status === undefined ? undefined : problem(status, code, error.message);
  }
  // Fastify's own: a body that is no JSON, too long, or of another type.
  if (statusCode !== undefined && statusCode < 500)
    return problem(
      TITLES[statusCode] === undefined ? 400 : statusCode,
      "api.bad_request",
      BODY_FAULTS[statusCode] ?? `${messageOf(error)}: send a body that is JSON`,
    );
  return undefined;
}

/** `type` is a URN, because the code is what it identifies; no page need exist for it. */
export function problem(status: number, code: string, detail: string): Problem {
  return { type: `urn:nodeyard:error:${code}`, title: TITLES[status] ?? "Error", status, code, detail };
}

export function problemText(status: number, code: string, detail: string): string {
  return JSON.stringify(problem(status, code, detail));
}
