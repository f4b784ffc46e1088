import type { Socket } from "node:net";
import { messageOf } from "@nodeyard/runtime";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { NotReady } from "./errors.ts";
import { type Visibility, visibilityOf } from "./http/caller.ts";
import { problem } from "./http/problem.ts";
import type { AppParts } from "./known.ts";
import { addPage, PAGE_PATHS } from "./page.ts";
import { addBackup, addRoutes, HEALTH } from "./routes.ts";
import type { Door } from "./v1/admission.ts";
import { addV1, badPath, V1 } from "./v1/mount.ts";
import { problemText, TITLES } from "./v1/problems.ts";

export { EventHub } from "./v1/event-hub.ts";
export { Issuers } from "./v1/issuers.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** What the caller may see. */
    visibility: Visibility;
  }
}

/**
 * The time for a whole request to arrive, milliseconds; slower clients are disconnected, so that none holds a connection by
 * sending slowly.
 */
const REQUEST_MS = 10_000;
/** Without a request on a connection that is kept, milliseconds. */
const IDLE_MS = 5_000;
/** Without a byte in either direction while an answer is under way, milliseconds: who does not read keeps no connection. */
const STALLED_MS = 60_000;
/** The longest body, in bytes, unless the route names a limit of its own: only an import of image records needs more. */
const BODY_BYTES = 64 * 1024;
/** Of one listener; more are closed at once. Streams of events are limited to a quarter of it, so that calls always get through. */
const MAX_CONNECTIONS = 256;
/** Characters of a part of a path. Names of providers and builds may be long; the router's own limit is 100. */
const MAX_PARAMETER = 1_000;

/**
 * The HTTP interface of one listener, which does not listen yet. It knows nothing but `parts.sources`, and asks them anew for
 * each request. `door`: what kind of listener it is, which decides on the caller's rights.
 */
export function createApp(parts: AppParts, door: Door): FastifyInstance {
  const { log } = parts;
  const app = fastify({
    logger: false,
    exposeHeadRoutes: false,
    // A stop does not wait for clients that keep a connection.
    forceCloseConnections: true,
    requestTimeout: REQUEST_MS,
    connectionTimeout: STALLED_MS,
    keepAliveTimeout: IDLE_MS,
    bodyLimit: BODY_BYTES,
    routerOptions: { maxParamLength: MAX_PARAMETER },
    clientErrorHandler: refuseBytes,
    ...(door.tls && {
      https: { ...door.tls, requestCert: door.tls.ca !== undefined, handshakeTimeout: REQUEST_MS },
    }),
    // What the router itself refuses: no hook runs.
    frameworkErrors: (error, request, reply) => {
      const isV1 = request.url.startsWith(`${V1}/`);
      if (isV1) return badPath(reply, messageOf(error));
      return fail(request, reply, 400, messageOf(error));
    },
  });
  app.server.maxConnections = MAX_CONNECTIONS;
  app.decorateRequest("visibility", "nothing");
  app.addHook("onRequest", async (request, reply) => {
    // It has rights of its own, also where nothing is found.
    if ((request.routeOptions.url ?? request.url).startsWith(`${V1}/`)) return;
    const { remoteAddress } = request.raw.socket;
    const asking = { bySocket: door.bySocket, address: remoteAddress, headers: request.headers };
    request.visibility = visibilityOf(asking, door.token);
    // Supervisors have no token and learn only whether the process works. A browser has none before the user logs in.
    const url = request.routeOptions.url ?? "";
    if (request.visibility !== "nothing" || HEALTH.has(url) || PAGE_PATHS.has(url)) return;
    reply.header("www-authenticate", "Bearer");
    const isWrong = request.headers.authorization !== undefined;
    const what = isWrong
      ? "that is not the token of this listener: send it as"
      : "send the token of this listener:";
    return fail(request, reply, 401, `${what} Authorization: Bearer TOKEN`);
  });
  app.setNotFoundHandler((request, reply) => fail(request, reply, 404, "The resource could not be found."));
  app.setErrorHandler((error, request, reply) => {
    const { code = "", statusCode = 500 } = error as { code?: string; statusCode?: number };
    if (error instanceof NotReady || code.startsWith("tree.")) {
      reply.header("retry-after", "1");
      return fail(request, reply, 503, messageOf(error));
    }
    if (statusCode < 500) return fail(request, reply, statusCode, messageOf(error));
    log.error({ path: request.url, error: messageOf(error) }, "failed to answer an HTTP request");
    return fail(request, reply, 500, "Internal error; see the log.");
  });
  addRoutes(app, parts);
  addPage(app);
  addV1(app, parts, door);
  if (door.bySocket) addBackup(app, parts);
  return app;
}

/** Answers bytes that are no valid HTTP request; their path is unknown. */
function refuseBytes(error: Error & { readonly code?: string }, socket: Socket): void {
  // The client is gone, so an answer would reach no one.
  if (error.code === "ECONNRESET" || socket.destroyed || !socket.writable) return void socket.destroy();
  const status =
    error.code === "HPE_HEADER_OVERFLOW" ? 431 : error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? 408 : 400;
  const body = problemText(
    status,
    "api.bad_request",
    "the request cannot be read, is too long, or took too long",
  );
  const head = `HTTP/1.1 ${status} ${TITLES[status]}\r\ncontent-type: application/problem+json\r\n`;
  socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`);
}

/** An error outside of REST v1, in the form of the old server. */
function fail(request: FastifyRequest, reply: FastifyReply, status: number, message: string): FastifyReply {
  const { type, text } = problem(status, message, request.headers.accept);
  // As bytes: to text a charset would be added that the old server does not name.
  return reply.code(status).header("content-type", type).send(Buffer.from(text));
}
