import { createHash, timingSafeEqual } from "node:crypto";
import { type AddressInfo, isIP } from "node:net";
import { messageOf, settledWithin } from "@nodeyard/runtime";
import fastify, { type FastifyInstance } from "fastify";
import { z } from "zod";
import { Keys } from "../config.ts";
import { ConnectConfigError } from "../errors.ts";
import type { ConnectorParts } from "../kind.ts";
import { readSecret } from "./secret-file.ts";

/** Words of sections whose connector serves the protocol of another system. */
export const facadeFields = {
  listen: Keys.address.describe(
    "where callers connect; what is no loopback address needs a proxy with TLS before it",
  ),
  username: z
    .string()
    .min(1)
    .optional()
    .describe("callers must send this name with the password (HTTP Basic)"),
  "password-file": Keys.secretFile.optional(),
} as const;

/** Values of `facadeFields`. */
export interface FacadePlace {
  readonly listen: { readonly host: string; readonly port: number };
  readonly username?: string | undefined;
  readonly "password-file"?: string | undefined;
  /** The routes check a signature of each call, so callers need no password. */
  readonly isSigned?: boolean;
}

/** A server that other systems' clients call. */
export interface Facade {
  readonly url: string;
  /** Stops listening; calls under way have `graceMs` to end. */
  close(graceMs: number): Promise<void>;
}

/** As at the API's listeners: slow, silent and endless callers hold nothing. */
const REQUEST_MS = 10_000;
const STALLED_MS = 60_000;
const BODY_BYTES = 64 * 1_024;
const MAX_CONNECTIONS = 1_024;

/**
 * Listens, with the routes that `add` adds. A body arrives as text, because callers send JSON under any content type, and a content type
 * without a body. Rejects with ConnectConfigError.
 */
export async function openFacade(
  place: FacadePlace,
  { name: connector, clock, log, counters }: ConnectorParts,
  add: (app: FastifyInstance) => void,
): Promise<Facade> {
  const credentials = credentialsOf(place);
  const app = fastify({
    logger: false,
    requestTimeout: REQUEST_MS,
    connectionTimeout: STALLED_MS,
    bodyLimit: BODY_BYTES,
    forceCloseConnections: "idle",
  });
  app.server.maxConnections = MAX_CONNECTIONS;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
  app.addHook("onRequest", async ({ headers }, reply) => {
    if (credentials === undefined || isSame(headers.authorization ?? "", credentials)) return;
    reply.header("www-authenticate", 'Basic realm="nodeyard"').code(401).type("text/plain; charset=utf-8");
    return reply.send("send the user name and the password of this connector\n");
  });
  app.addHook("onResponse", async ({ method, url, routeOptions }, { statusCode }) => {
    const call = `${method} ${routeOptions.url ?? "other"}`;
    counters.add("connect.calls", 1, { connector, call, result: String(statusCode) });
    log.debug({ method, url, status: statusCode }, "answered a call");
  });
  add(app);
  const { host, port } = place.listen;
  const shown = isIP(host) === 6 ? `[${host}]` : host;
  await app.listen({ host, port }).catch((cause: unknown) => {
    throw new ConnectConfigError(
      `cannot listen on ${shown}:${port} (${messageOf(cause)}); choose another address`,
      {
        cause,
      },
    );
  });
  const url = `http://${shown}:${(app.server.address() as AddressInfo).port}`;
  if (credentials === undefined && place.isSigned !== true && !/^(127\.|localhost$|::1$)/.test(host))
    log.warn({ url }, "whoever reaches this address may take nodes: set username and password-file");
  return {
    url,
    async close(graceMs) {
      const closed = app.close();
      await settledWithin(clock, graceMs, closed);
      app.server.closeAllConnections();
      await closed;
    },
  };
}

/** The header `Authorization` that callers must send; undefined: none. Throws ConnectConfigError. */
function credentialsOf({ username, "password-file": file }: FacadePlace): string | undefined {
  if (username === undefined && file === undefined) return undefined;
  if (username === undefined || file === undefined)
    throw new ConnectConfigError("username and password-file belong together: set both, or none");
  const password = readSecret(file);
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

/** Digests are compared, which are of one length whatever was sent. */
function isSame(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(left!, right!);
}
