import { type HttpAnswer, messageOf, NodeyardError, type Unsent } from "@nodeyard/driver";
import { withoutSecrets } from "@nodeyard/runtime";

/** Characters of a service's message that are kept: proxies answer with whole pages. */
const LONGEST = 500;

/** Google refused a request. `reason` is the word of the API (`quotaExceeded`, `RATE_LIMIT_EXCEEDED`), empty when the answer has none. */
export class ApiError extends NodeyardError {
  readonly status: number;
  readonly reason: string;

  constructor(request: Pick<Unsent, "method" | "url">, answer: HttpAnswer) {
    const { message, reasons } = faultOf(answer.text);
    const word = reasons.length === 0 ? "" : ` (${reasons.join(", ")})`;
    super("gce.refused", `${at(request)} was answered ${answer.status}: ${message}${word}`);
    this.status = answer.status;
    this.reason = reasons.join(" ");
  }

  /** Too many calls in this minute, or too many operations at once. Nothing was done. */
  get isRate(): boolean {
    return (
      this.status === 429 || /rateLimitExceeded|RATE_LIMIT_EXCEEDED|CONCURRENT_OPERATIONS/i.test(this.reason)
    );
  }
}

/** Google could not be reached, or the connection broke before the answer. */
export class NoAnswer extends NodeyardError {
  constructor(request: Pick<Unsent, "method" | "url">, cause: unknown) {
    super("gce.no_answer", `${at(request)} got no answer: ${messageOf(cause)}`, { cause });
  }
}

/** Something answered that is not Google's API, such as a proxy. */
export class OddAnswer extends NodeyardError {
  constructor(request: Pick<Unsent, "method" | "url">, answer: HttpAnswer, why: string) {
    super("gce.odd_answer", `${at(request)}: the answer ${answer.status} is not Google's: ${why}`);
  }
}

/** No token: the credentials are missing, cannot be read, or are refused. */
export class LoginError extends NodeyardError {
  constructor(cause: unknown) {
    super("gce.login", `no token of Google Cloud: ${short(messageOf(cause))}`, { cause });
  }
}

/** The error of an operation that has ended: code and message of the first, and the zones that a stock-out names. */
export interface OperationFault {
  readonly code: string;
  readonly message: string;
  readonly errorDetails?: readonly {
    readonly errorInfo?: { readonly metadatas?: Readonly<Record<string, string>> };
  }[];
}

/** The answer's words: `error.errors[].reason`, and `reason` of its details in newer parts of the API. */
function faultOf(text: string): { readonly message: string; readonly reasons: readonly string[] } {
  try {
    const { error } = JSON.parse(text) as {
      error?: { message?: unknown; errors?: unknown; details?: unknown };
    };
    const words = [error?.errors, error?.details].flatMap((list) => (Array.isArray(list) ? list : []));
    const reasons = words.flatMap(({ reason }) => (typeof reason === "string" ? [reason] : []));
    return { message: short(typeof error?.message === "string" ? error.message : text), reasons };
  } catch {
    return { message: short(text), reasons: [] };
  }
}

function short(text: string): string {
  const line = withoutSecrets(text.trim().replaceAll(/\s+/g, " ")) || "no reason given";
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}...` : line;
}

/** For messages: without the query, and without the ids of upload sessions in it. */
function at({ method, url }: Pick<Unsent, "method" | "url">): string {
  return `${method} ${URL.canParse(url) ? new URL(url).pathname : url}`;
}
