import type { HttpAnswer, HttpRequest } from "@nodeyard/driver";
import { errorClass, messageOf, NodeyardError, withoutSecrets } from "@nodeyard/runtime";

/** The reason that a service gives for a refused request. */
export interface Fault {
  /** Type of the error, which only neutron names: "OverQuota", "IpAddressGenerationFailure". */
  readonly type: string | null;
  /** At most LONGEST characters. */
  readonly message: string;
}

/** A service answered with an error status. The message has the request id, by which operators find the request in the service's log. */
export class ApiError extends NodeyardError {
  /** The HTTP status, 400 or more. */
  readonly status: number;
  readonly fault: Fault;
  /** The service's id of the request; null when the answer has none, as from a proxy. */
  readonly requestId: string | null;

  constructor(service: string, request: Pick<HttpRequest, "method" | "url">, response: HttpAnswer) {
    const fault = faultOf(response.text);
    const requestId = requestIdOf(response.headers);
    const id = requestId === null ? "" : ` (request ${requestId})`;
    super(
      "openstack.refused",
      `${at(service, request)} was answered ${response.status}${requestId === null ? strangerOf(request, response) : ""}: ${fault.message}${id}`,
    );
    this.status = response.status;
    this.fault = fault;
    this.requestId = requestId;
  }
}

/** The service could not be reached, or the connection broke before the answer. */
export class NoAnswer extends NodeyardError {
  constructor(service: string, request: Pick<HttpRequest, "method" | "url">, cause: unknown) {
    super("openstack.no_answer", `${at(service, request)} got no answer: ${textOf(cause)}`, { cause });
  }
}

/** A service sent an answer that its API does not define. */
export class OddAnswer extends NodeyardError {
  constructor(service: string, request: Pick<HttpRequest, "method" | "url">, why: string, cause?: unknown) {
    super("openstack.odd_answer", `${at(service, request)}: ${why}`, { cause });
  }
}

/** The configuration does not fit the cloud: unknown cloud, region or service, or incomplete credentials. */
export class CloudConfigError extends errorClass("openstack.configuration") {}

/** Characters of a service's message that are kept: proxies answer with whole pages. */
const LONGEST = 500;

/**
 * Extracts the reason. nova and cinder: {"forbidden": {"code": 403, "message": ..}}. neutron: {"NeutronError": {"type", "message",
 * "detail"}} or a string. keystone: {"error": {"message"}}. glance: a page of HTML. Any other text is shown as it is.
 */
function faultOf(text: string): Fault {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return { type: null, message: short(plain(text)) };
  }
  const inner = typeof body === "object" && body !== null ? Object.values(body)[0] : undefined;
  if (typeof inner === "string") return { type: null, message: short(inner) };
  if (typeof inner !== "object" || inner === null) return { type: null, message: short(text) };
  const { message, type } = inner as { message?: unknown; type?: unknown };
  return {
    type: typeof type === "string" ? type : null,
    message: short(typeof message === "string" ? message : text),
  };
}

/** `x-openstack-request-id` since 2016; nova and glance also have an older name. */
function requestIdOf(headers: HttpAnswer["headers"]): string | null {
  return headers["x-openstack-request-id"] ?? headers["x-compute-request-id"] ?? null;
}

/** Names what answers in the place of a service: a proxy, or a login to a network. Empty for an answer that may be the service's own. */
export function strangerOf({ url }: Pick<HttpRequest, "url">, { headers }: HttpAnswer): string {
  if (!/text\/html/i.test(headers["content-type"] ?? "") || !URL.canParse(url)) return "";
  return ` by ${new URL(url).host} with a page of HTML that is not OpenStack's`;
}

/** The text of an HTML page. Title and style are left out, since the title repeats the status. */
function plain(html: string): string {
  return html
    .replaceAll(/<(title|style)[\s\S]*?<\/\1>/g, " ")
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/\s+/g, " ");
}

function short(text: string): string {
  const line = withoutSecrets(text.trim()) || "no reason given";
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}...` : line;
}

/** The request for messages: without the query, which may contain names, and without the host, which the configuration shows. */
function at(service: string, { method, url }: Pick<HttpRequest, "method" | "url">): string {
  return `${service}: ${method} ${URL.canParse(url) ? new URL(url).pathname : url}`;
}

/** undici says "fetch failed" or nothing; the reason is in the cause. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return textOf(error.errors[0]);
  const text = messageOf(error);
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return text === "" ? code : text;
}
