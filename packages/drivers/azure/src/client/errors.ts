import type { HttpAnswer, Unsent } from "@nodeyard/driver";
import { errorClass, messageOf, NodeyardError, withoutSecrets } from "@nodeyard/runtime";

/** Azure refused a request, or an operation that it had begun failed. The message has the id by which its support finds the request. */
export class ArmError extends NodeyardError {
  /** The HTTP status; 0: the failure of an operation, which has none. */
  readonly status: number;
  /** Azure's code: "SkuNotAvailable"; empty when the answer has none, as that of a proxy. */
  readonly fault: string;

  constructor(what: string, status: number, said: Fault, requestId?: string) {
    const id = requestId === undefined ? "" : ` (request ${requestId})`;
    super("azure.refused", `${what}: ${said.message}${id}`);
    this.status = status;
    this.fault = said.code;
  }

  static of(request: Unsent, answer: HttpAnswer): ArmError {
    const said = faultIn(answer.text);
    const what = `${textOf(request)} was answered ${answer.status} ${said.code}`.trim();
    return new ArmError(what, answer.status, said, answer.headers["x-ms-request-id"]);
  }
}

/** Azure could not be reached, or the connection broke before the answer. */
export class NoAnswer extends NodeyardError {
  constructor(request: Unsent, cause: unknown) {
    super("azure.no_answer", `${textOf(request)} got no answer: ${messageOf(cause)}`, { cause });
  }
}

/** Azure, or something in its place, sent an answer that its API does not define. */
export class OddAnswer extends errorClass("azure.odd_answer") {}

/** The credentials are missing, incomplete or refused. */
export class LoginError extends errorClass("azure.login") {}

/** Azure's reason. */
export interface Fault {
  readonly code: string;
  readonly message: string;
}

/** Characters of a message that are kept: proxies answer with whole pages. */
const LONGEST = 500;

/** `{"error": {"code", "message", "details"}}` of the resource manager, whose inner code is the precise one; blobs answer in XML. */
export function faultIn(text: string): Fault {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    const [, code = ""] = /<Code>(\w+)<\/Code>/.exec(text) ?? [];
    return { code, message: short(text.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ")) };
  }
  return faultOf((body as { error?: unknown } | null)?.error ?? body);
}

/** The reason in an error of the API, as in an answer or in the state of an operation. */
export function faultOf(error: unknown): Fault {
  const { code, message, details } = (error ?? {}) as Readonly<Record<string, unknown>>;
  const [inner] = Array.isArray(details) ? details : [];
  if (typeof inner?.code === "string" && /^(Deployment|Resource\w*)Failed$/.test(String(code)))
    return faultOf(inner);
  return {
    code: typeof code === "string" ? code : "",
    message: short(typeof message === "string" ? message : JSON.stringify(error ?? null)),
  };
}

/** Without the query, which may have a signature. */
function textOf({ method, url }: Unsent): string {
  return `${method} ${URL.canParse(url) ? new URL(url).pathname : url}`;
}

function short(text: string): string {
  const line = withoutSecrets(text.trim()) || "no reason given";
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}...` : line;
}
