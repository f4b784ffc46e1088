import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIPv4, isIPv6 } from "node:net";
import type { Caller } from "../../core/permit.ts";
import { NotLoopbackError } from "../../errors.ts";
import type { Handler } from "../handler.ts";

/** A token that lets a caller in over TCP. Only its digest is kept. */
export interface TokenAccount {
  /** SHA-256 of the token, hexadecimal. */
  readonly sha256: string;
  /** Undefined when the account has ended. */
  readonly caller: () => Caller | undefined;
}

/** A caller without a valid token. */
export const ANONYMOUS: Caller = { account: "anonymous", role: "anonymous", generation: 0 };

/** The caller of this `Authorization` header; anonymous when it is absent or wrong. */
export function callerOfToken(tokens: readonly TokenAccount[], authorization: string | undefined): Caller {
  const token = /^Bearer ([\x21-\x7e]{1,256})$/.exec(authorization ?? "")?.[1];
  if (token === undefined) return ANONYMOUS;
  const shown = createHash("sha256").update(token).digest();
  const known = tokens.find(({ sha256 }) => {
    const wanted = Buffer.from(sha256, "hex");
    return wanted.length === shown.length && timingSafeEqual(wanted, shown);
  });
  return known?.caller() ?? ANONYMOUS;
}

/** Longest body of a call, bytes; documents come from the launcher's account and from root only. */
const MAX_CALL = 1024 * 1024;
const MAX_DOCUMENT = 10 * 1024 * 1024;

/** Time for a whole request to arrive, milliseconds. */
const REQUEST_TIMEOUT = 30_000;

/** Connections of one account at a time. */
const MAX_CONNECTIONS = 32;

/** An HTTP server that does not listen yet; `callerOf` says who speaks, from what came before the body. */
export function httpServer(handler: Handler, callerOf: (request: IncomingMessage) => Caller): Server {
  const options = { requestTimeout: REQUEST_TIMEOUT, headersTimeout: 10_000, keepAliveTimeout: 5_000 };
  const server = createServer(options, (request, response) => {
    void answer(handler, callerOf(request), request, response).catch(() => response.destroy());
  });
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

async function answer(
  handler: Handler,
  caller: Caller,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const trusted = caller.role === "root" || caller.role === "control";
  const body = await bodyOf(request, trusted ? MAX_DOCUMENT : MAX_CALL);
  if (body === undefined) {
    // The rest is not read: the connection ends with the answer.
    response.writeHead(413, { "content-type": "text/plain", connection: "close" }).end("too long\n");
    return;
  }
  const path = (request.url ?? "/").split("?", 1)[0]!;
  const reply = await handler({ method: request.method ?? "", path, body }, caller);
  const length = Buffer.byteLength(reply.body);
  response.writeHead(reply.status, { "content-type": reply.type, "content-length": length }).end(reply.body);
}

/** undefined when it is longer than `limit` bytes. */
async function bodyOf(request: IncomingMessage, limit: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > limit) return undefined;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Listens on loopback, for those who show a token; everybody else gets the answer of `Help`. Throws NotLoopbackError. */
export async function listenTcp(
  handler: Handler,
  host: string,
  port: number,
  tokens: readonly TokenAccount[],
): Promise<Server> {
  const loopback = (isIPv4(host) && host.startsWith("127.")) || (isIPv6(host) && host === "::1");
  if (!loopback) throw new NotLoopbackError(host);
  const server = httpServer(handler, (request) => callerOfToken(tokens, request.headers.authorization));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return server;
}
