import { createHash } from "node:crypto";
import type { Claim } from "@nodeyard/model";
import { treeNow } from "@nodeyard/operations";
import { issueText, messageOf } from "@nodeyard/runtime";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { GZIP_HEADER, packed, takesGzip } from "../gzip.ts";
import type { AppParts } from "../known.ts";
import { Admission, type Door, demand, isFromPage, type Session } from "./admission.ts";
import { BY_SOCKET, type Principal, principalOf } from "./principal.ts";
import { ApiError, noToken, notFound, problem, problemOf, problemText } from "./problems.ts";
import { RateLimit } from "./rate.ts";
import type { Call, Entry, Route, Stream } from "./route.ts";
import { ROUTES } from "./routes.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The caller's rights by its listener or token; a cookie is checked separately. */
    claim: Claim | undefined;
    /** What its cookie names; looked for only where the cookie counts. */
    session: Session | undefined;
    principal: Principal | undefined;
  }
  interface FastifyContextConfig {
    /** Absent: this process does not serve REST v1. */
    v1?: Route;
    /** Methods that there are, of a route for all the others. */
    allow?: string;
  }
}

/** All paths of REST v1 begin with it. It changes only when clients would break. */
export const V1 = "/v1";
/** Printable ASCII without spaces. */
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Methods that change nothing. */
const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD"]);

/** What all routes of one listener share. Rates are counted for each listener. */
interface Around {
  readonly parts: AppParts;
  readonly admission: Admission;
  readonly rates: RateLimit;
}

/**
 * REST v1 (docs/design/rest.md): the routes of the table, and nothing without a right. Each request is identified, counted,
 * admitted, checked against the schemas of its route, handled, and audited, in this order.
 */
export function addV1(app: FastifyInstance, parts: AppParts, door: Door): void {
  const around = { parts, admission: new Admission(parts, door), rates: new RateLimit(parts.clock) };
  app.decorateRequest("claim", undefined);
  app.decorateRequest("session", undefined);
  app.decorateRequest("principal", undefined);
  void app.register(
    async (scope) => {
      // Only JSON: a form of another site can send text, but not JSON, without being asked by the browser first.
      scope.removeContentTypeParser("text/plain");
      scope.addHook("onRequest", async (request) => {
        const refused = await identify(request, around).then(
          () => undefined,
          (error: unknown) => error,
        );
        admit(request, around, refused);
      });
      // Before the answer is sent, so that a client with an answer can rely on the audit.
      scope.addHook("onSend", async (request, reply) => note(request, reply, parts));
      scope.setErrorHandler((error, request, reply) => fail(error, request, reply, parts));
      scope.setNotFoundHandler((request, reply) => fail(notFound(request.url), request, reply, parts));
      for (const route of ROUTES) addRoute(scope, route, around);
      // The router finds them, so that they are refused as all others are, by who may not call.
      for (const [url, methods] of methodsByPath())
        scope.route({
          method: scope.supportedMethods.filter((method) => !methods.includes(method)),
          url,
          config: { allow: methods.join(", ") },
          handler: () => Promise.reject(new Error("no such method is admitted")),
        });
    },
    { prefix: V1 },
  );
}

/** Methods that the table has, by path. */
function methodsByPath(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const { path, method } of ROUTES) found.set(urlOf(path), [...(found.get(urlOf(path)) ?? []), method]);
  return found;
}

/** As the router has it, below the prefix. */
function urlOf(path: string): string {
  return path.slice(V1.length).replace(/\{(\w+)\}/g, ":$1");
}

/**
 * Identifies the caller. Rejects when its credentials are invalid. A cookie is looked for only where no other credential was
 * shown, or where the route is about cookies.
 */
async function identify(request: FastifyRequest, { admission }: Around): Promise<void> {
  const access = request.routeOptions.config.v1?.access;
  request.claim = access === "cookie" ? undefined : await admission.claim(request);
  const byCookie = access !== undefined || (request.claim ?? request.headers.authorization) === undefined;
  request.session = byCookie ? admission.session(request) : undefined;
  const claim = access === "open" ? request.claim : (request.claim ?? request.session?.claim);
  request.principal = claim && principalOf(claim);
}

/** Throws `refused`, or ApiError for a caller that may not call this route or calls too often. */
function admit(request: FastifyRequest, { rates }: Around, refused: unknown): void {
  const { claim, session, principal, routeOptions, ip, method, url } = request;
  // Counted by name, and by address for callers without one: tokens that are tried out are held up as well.
  const wait = claim === BY_SOCKET ? 0 : rates.take(principal?.name ?? `address:${ip}`);
  if (wait > 0) {
    const seconds = Math.ceil(wait / 1_000);
    throw new ApiError(429, "api.too_fast", `too many calls: try again in ${seconds} s`, seconds);
  }
  // Not before: who tries many tokens is held up.
  if (refused !== undefined) throw refused;
  if (principal === undefined) {
    if (routeOptions.config.v1?.access === "open") return;
    // Where only a cookie counts, no token was looked at.
    throw noToken(routeOptions.config.v1?.access === "cookie" ? undefined : request.headers.authorization);
  }
  // A browser sends the cookie with whatever a page makes it send.
  const isByCookie = claim === undefined && session !== undefined;
  if (isByCookie && !SAFE.has(method) && !isFromPage(request, session))
    throw new ApiError(
      403,
      "api.no_csrf",
      "a call that changes something by cookie needs the header X-Nodeyard-CSRF with the csrf of GET /v1/session",
    );
  const { v1, allow } = routeOptions.config;
  if (allow !== undefined)
    throw new ApiError(405, "api.bad_method", `${method} is not for ${routeOptions.url}; there is ${allow}`);
  const roles = v1?.roles;
  // An unknown path is answered as such, but only to callers that are identified.
  if (roles !== undefined && !roles.includes(principal.role))
    throw new ApiError(
      403,
      "api.forbidden",
      `${principal.name} has the role ${principal.role}; ${method} ${url.split("?", 1)[0]} needs one of: ${roles.join(", ")}`,
    );
}

/**
 * The handler of a route: 204 without a body, else JSON; a GET with an `ETag` of the body, by which a page that polls is answered
 * 304.
 */
function addRoute(scope: FastifyInstance, route: Route, around: Around): void {
  scope.route({
    method: route.method,
    url: urlOf(route.path),
    config: { v1: route },
    ...(route.maxBody !== undefined && { bodyLimit: route.maxBody }),
    handler: async (request, reply) => {
      const call = callOf(route, request, around);
      const result = await route.handle(
        call,
        streamOf(request, reply, around),
        entryOf(request, reply, around),
      );
      if (reply.sent) return reply;
      if (route.status === 204) return reply.code(204).send();
      const text = JSON.stringify(result);
      reply.code(route.status).header("cache-control", "no-cache").type("application/json");
      if (route.method !== "GET") return reply.send(text);
      const etag = `W/"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`;
      reply.header("etag", etag);
      const known = (request.headers["if-none-match"] ?? "").split(",").map((one) => one.trim());
      return known.includes(etag) ? reply.code(304).send() : reply.send(text);
    },
  });
}

/** A proxy must not keep events back, and a client that is cut off comes back after this. */
const STREAM_HEADERS = { "cache-control": "no-store", "x-accel-buffering": "no", vary: "accept-encoding" };
/** For `EventSource` (HTML Standard, "Server-sent events"): milliseconds until a client that is cut off connects again. */
const RETRY = "retry: 2000\n";

/**
 * The reply as a stream of events: a route that opens it sends nothing else, and the framework leaves the connection alone from
 * then on.
 */
function streamOf(request: FastifyRequest, reply: FastifyReply, { admission }: Around): Stream {
  const { claim } = request;
  const last = request.headers["last-event-id"];
  return {
    last: typeof last === "string" ? last : undefined,
    admitted: () =>
      // By a cookie the session is looked up again, since it may have ended; by a token what the token may do now.
      (claim === undefined ? admission.session(request) : admission.standing(claim)) !== undefined,
    open() {
      reply.hijack();
      const { raw } = reply;
      const gzip = takesGzip(request.headers);
      raw.writeHead(200, {
        "content-type": "text/event-stream",
        ...STREAM_HEADERS,
        ...(gzip && { "content-encoding": "gzip" }),
      });
      raw.write(gzip ? Buffer.concat([GZIP_HEADER, packed(RETRY)]) : RETRY);
      return {
        gzip,
        write: (text) => raw.destroyed || raw.write(text),
        onDrain: (resume) => void raw.once("drain", resume),
        onClose: (ended) => void raw.once("close", ended),
        end: () => void raw.end(),
      };
    },
  };
}

/** How the caller came in, and the cookie by which it may come again. */
function entryOf(request: FastifyRequest, reply: FastifyReply, { parts, admission }: Around): Entry {
  const { claim, session } = request;
  return {
    ...{ claim, session, shown: request.headers.authorization },
    standing: (other) => admission.standing(other),
    enter(by, text, expires) {
      // The audit notes who logged in; the call itself may have been without a credential.
      request.principal = principalOf(by);
      const now = treeNow(demand(parts.sources.known()).handles);
      reply.header("set-cookie", admission.cookie(request, text, expires - now));
    },
    leave: () => void reply.header("set-cookie", admission.cookie(request, "", 0)),
  };
}

/** The call as its handler gets it. Throws ApiError when it does not match the schemas, and NotReady before the tree was read. */
function callOf(route: Route, request: FastifyRequest, { parts, rates }: Around): Call {
  // A change that could not be audited is refused.
  if (route.method !== "GET" && parts.sources.audit() === undefined)
    throw new ApiError(503, "api.no_journal", "this process keeps no journal: call a launcher instead");
  const key = request.headers["idempotency-key"];
  if (key !== undefined && route.keyed === true && (typeof key !== "string" || !KEY.test(key)))
    throw new ApiError(400, "api.bad_request", "Idempotency-Key: give 1 to 255 printable characters");
  const principal = request.principal!;
  return {
    principal,
    charge: (calls) => request.claim !== BY_SOCKET && rates.charge(principal.name, calls),
    params: checked("path", route.params, request.params),
    query: checked("query", route.query, request.query),
    body: checked("body", route.body, bodyOf(route, request)),
    key: typeof key === "string" ? key : undefined,
    known: demand(parts.sources.known()),
    parts,
  };
}

/** Throws ApiError where there is no body, and the route needs one: a schema would only say that something is undefined. */
function bodyOf({ body: schema }: Route, { body }: FastifyRequest): unknown {
  if (body != null || schema === undefined || schema.safeParse(body).success) return body ?? undefined;
  const keys = schema instanceof z.ZodObject ? Object.keys(schema.shape).join(", ") : "the fields";
  throw new ApiError(
    400,
    "api.bad_request",
    `there is no body: send a JSON object with ${keys}, and Content-Type: application/json; see ${V1}/openapi.json`,
  );
}

/** The value as the schema has it, with defaults. Throws ApiError with the first five faults. */
function checked(where: string, schema: z.ZodType | undefined, value: unknown): unknown {
  if (schema === undefined) return undefined;
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const fields = schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
  const issues = error.issues.map((issue) => issueText(issue, value, { where, fields }));
  throw new ApiError(400, "api.bad_request", `${issues.slice(0, 5).join("; ")}; see ${V1}/openapi.json`);
}

/** Audits each call that changes something, and each refused one: who, what, why, and the result. */
async function note(
  { principal, routeOptions, params, body, method }: FastifyRequest,
  reply: FastifyReply,
  parts: AppParts,
): Promise<void> {
  const route = routeOptions.config.v1;
  if (principal === undefined || route === undefined || method === "GET") return;
  const { why } = (body ?? {}) as { readonly why?: unknown };
  await parts.sources.audit()?.write({
    who: principal.name,
    role: principal.role,
    action: route.id,
    subject: Object.values((params ?? {}) as Record<string, string>).join("/"),
    why: typeof why === "string" ? why : null,
    status: reply.statusCode,
  });
}

/** For a path that the router cannot read; the caller is not known yet. */
export function badPath(reply: FastifyReply, why: string): FastifyReply {
  const text = problemText(400, "api.bad_path", why.slice(0, 200));
  return reply.code(400).type("application/problem+json").send(text);
}

/** Any error as problem details. Unexpected errors are logged, and their text is not sent. */
function fail(error: unknown, request: FastifyRequest, reply: FastifyReply, { log }: AppParts): FastifyReply {
  const found = problemOf(error);
  if (found === undefined)
    log.error({ path: request.url, error: messageOf(error) }, "failed to answer an HTTP request");
  const body = found ?? problem(500, "api.internal", "internal error; see the log");
  if (body.status === 405) reply.header("allow", request.routeOptions.config.allow ?? "");
  if (body.status === 401) reply.header("www-authenticate", "Bearer");
  const retryAfter = error instanceof ApiError ? error.retryAfter : body.status === 503 ? 1 : undefined;
  if (retryAfter !== undefined) reply.header("retry-after", String(retryAfter));
  return reply.code(body.status).type("application/problem+json").send(JSON.stringify(body));
}
