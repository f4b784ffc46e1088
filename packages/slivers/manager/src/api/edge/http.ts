import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { defined, nodeHttp } from "@nodeyard/runtime";
import type { ApiResponse } from "../handler.ts";
import { type ParsedRequest, parseRequest } from "../parse-request.ts";

/** What the headers of a request say of it. */
export interface Head {
  /** Bytes of its body. */
  readonly length: number;
  /** Its length is not known before its end. */
  readonly chunked: boolean;
  readonly authorization?: string | undefined;
}

/** Who decides about the requests of one connection. */
export interface Conversation {
  /** Charges a request before its body is read: undefined, or the HTTP status that refuses it. */
  admit(head: Head): Promise<number | undefined>;
  answer(request: ParsedRequest, authorization: string | undefined): Promise<ApiResponse>;
  /** The bytes are no HTTP, or came too late. */
  malformed(): void;
}

/** Times for a whole request to arrive, milliseconds. */
const TIMES = { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 5_000 };
const REFUSALS: Readonly<Record<number, string>> = {
  400: "name a host",
  411: "send a content-length",
  413: "too long",
  429: "too many calls; wait a second",
};
/** Characters; a token has 256 at most. */
const MAX_AUTHORIZATION = 300;

/** An HTTP server that parses requests and leaves every decision about them to the conversation of their connection. */
export function serveHttp(of: (socket: Socket) => Conversation | undefined, times = TIMES): Server {
  const options = { ...times, connectionsCheckingInterval: 1_000, requireHostHeader: false };
  const server = nodeHttp().createServer(options, (request, response) => {
    const conversation = of(request.socket);
    if (conversation === undefined) return void response.destroy();
    // HTTP/1.0 has none: what a script of a few lines sends.
    if (request.httpVersion !== "1.0" && request.headers.host === undefined) {
      conversation.malformed();
      return refuse(response, 400);
    }
    void converse(conversation, request, response).catch(() => {
      conversation.malformed();
      response.destroy();
    });
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
    of(socket as Socket)?.malformed();
    const status = error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? "408 Request Timeout" : "400 Bad Request";
    socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`);
  });
  for (const event of ["connect", "checkExpectation"])
    server.on(event, ({ socket }: IncomingMessage) => {
      of(socket)?.malformed();
      socket.destroy();
    });
  return server;
}

/** The body is not read: the connection ends with the answer. */
function refuse(response: ServerResponse, status: number): void {
  response.writeHead(status, { "content-type": "text/plain", connection: "close" });
  response.end(`${REFUSALS[status]}\n`);
}

async function converse(
  { admit, answer }: Conversation,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = "", headers, url = "/" } = request;
  const authorization = headers.authorization?.slice(0, MAX_AUTHORIZATION);
  const length = Number(headers["content-length"] ?? 0);
  const refusal = await admit({
    length: Number.isSafeInteger(length) ? length : Number.MAX_SAFE_INTEGER,
    chunked: headers["transfer-encoding"] !== undefined,
    ...defined({ authorization }),
  });
  if (refusal !== undefined) return refuse(response, refusal);
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const path = url.split("?", 1)[0]!;
  const body = Buffer.concat(chunks.splice(0)).toString("utf8");
  // Not kept while it waits: what is parsed may be forty times as large as what came.
  const reply = await answer(parseRequest({ method, path, body }), authorization);
  const size = Buffer.byteLength(reply.body);
  response.writeHead(reply.status, { "content-type": reply.type, "content-length": size }).end(reply.body);
}
