import type { Server } from "node:http";
import { isIPv4, isIPv6 } from "node:net";
import { NotLoopbackError } from "../errors.ts";
import type { Handler } from "../handler.ts";
import { callerOfToken, type TokenAccount } from "../tokens.ts";
import { httpServer } from "./http-server.ts";

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
