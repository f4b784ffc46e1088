import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIPv4, isIPv6, type Socket } from "node:net";
import type { Caller } from "../../core/permit.ts";
import { NotLoopbackError } from "../../errors.ts";
import type { CallBudget } from "../call-budget.ts";
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

/** Longest body of a call by role, bytes. Documents come from the launcher's account and from root only. */
const MAX_BODY = {
  root: 10 * 1024 * 1024,
  control: 10 * 1024 * 1024,
  controller: 1024 * 1024,
  sliver: 128 * 1024,
  anonymous: 4 * 1024,
} as const satisfies Record<Caller["role"], number>;

/** Connections of one account at a time. */
const MAX_CONNECTIONS = 32;
/** Of a sliver. A call may wait for the machine for two minutes, and a sliver may make several. */
const SLIVER_CONNECTIONS = 8;

/** Time for a whole request to arrive, milliseconds. */
const TIMES = { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 5_000 };

/** What a server does with requests. */
export interface Intake {
  readonly handler: Handler;
  readonly budget: CallBudget;
}

/** An HTTP server of one account that does not listen yet. The account is charged when it connects, for the first call. */
export function accountServer({ handler, budget }: Intake, caller: Caller): Server {
  const charged = new WeakSet<Socket>();
  const server = createServer(TIMES, (request, response) => {
    const calls = charged.delete(request.socket) ? 0 : 1;
    void answer({ handler, budget }, caller, calls, request, response).catch(() => response.destroy());
  });
  server.on("connection", (socket) => {
    if (budget.spend(caller, 1)) charged.add(socket);
  });
  server.on("drop", () => budget.refuse(caller));
  server.maxConnections = caller.role === "sliver" ? SLIVER_CONNECTIONS : MAX_CONNECTIONS;
  return server;
}

/** Charges and bounds a call by what its headers say, before its body is read. */
async function answer(
  { handler, budget }: Intake,
  caller: Caller,
  calls: number,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = "", headers, url = "/" } = request;
  const refuse = (status: number, why: string) => {
    // The body is not read: the connection ends with the answer.
    response.writeHead(status, { "content-type": "text/plain", connection: "close" }).end(`${why}\n`);
  };
  const length = Number(headers["content-length"] ?? 0);
  const isLong = length > MAX_BODY[caller.role];
  if (!budget.spend(caller, calls, isLong ? 0 : length)) return refuse(429, "too many calls; wait a second");
  if (headers["transfer-encoding"] !== undefined) return refuse(411, "send a content-length");
  if (isLong) return refuse(413, "too long");
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const path = url.split("?", 1)[0]!;
  const reply = await handler({ method, path, body: Buffer.concat(chunks).toString("utf8") }, caller);
  const size = Buffer.byteLength(reply.body);
  response.writeHead(reply.status, { "content-type": reply.type, "content-length": size }).end(reply.body);
}

/** Listens on loopback, for those who show a token; everybody else gets the answer of `Help`. Throws NotLoopbackError. */
export async function listenTcp(
  intake: Intake,
  host: string,
  port: number,
  tokens: readonly TokenAccount[],
): Promise<Server> {
  const loopback = (isIPv4(host) && host.startsWith("127.")) || (isIPv6(host) && host === "::1");
  if (!loopback) throw new NotLoopbackError(host);
  /** The oldest first. They make room for the next, so that strangers who only connect do not keep out who has a token. */
  const strangers = new Set<Socket>();
  const server = createServer(TIMES, (request, response) => {
    const caller = callerOfToken(tokens, request.headers.authorization);
    if (caller !== ANONYMOUS) strangers.delete(request.socket);
    void answer(intake, caller, 1, request, response).catch(() => response.destroy());
  });
  server.on("connection", (socket) => {
    strangers.add(socket);
    socket.once("close", () => strangers.delete(socket));
    const [oldest] = strangers;
    if (strangers.size > MAX_CONNECTIONS) oldest?.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return server;
}
