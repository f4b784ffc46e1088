import { Readable } from "node:stream";
import { Agent, type Dispatcher, ProxyAgent, request, Socks5ProxyAgent } from "undici";

/** Time for TCP and TLS, milliseconds. Without it a server that drops packets would use up the whole time of an attempt. */
const CONNECT_MS = 15_000;

/** By what a server is verified, and known to it who calls. */
export interface TlsOptions {
  /** False: the server's certificate is not checked. */
  readonly verify: boolean;
  /** PEM of the authorities that may sign the server's certificate; null: the system's. */
  readonly ca: string | null;
  /** PEM of a client certificate; `key` is the PEM of its private key. */
  readonly cert: string | null;
  readonly key: string | null;
  /** Name in the server's certificate when it differs from the host of the address. */
  readonly serverName?: string | null;
}

/**
 * Persistent connections, at most `connections` to a server, directly or through a proxy (`http://`, `https://`, `socks5://`). Only connecting
 * has a limit of time; callers bound their calls by signals: a watch may be silent for a minute, and an upload takes longer than undici allows.
 */
export function dispatcherOf(
  { verify, ca, cert, key, serverName = null }: TlsOptions,
  proxy: string | null,
  connections: number,
): Dispatcher {
  const tls = {
    rejectUnauthorized: verify,
    ...(ca !== null && { ca }),
    ...(cert !== null && { cert }),
    ...(key !== null && { key }),
    ...(serverName !== null && { servername: serverName }),
  };
  // HTTP/2 is off: undici's implementation crashes the process when a stream is aborted while its client closes.
  const common = { connections, headersTimeout: 0, bodyTimeout: 0, allowH2: false };
  if (proxy === null) return new Agent({ ...common, connect: { timeout: CONNECT_MS, ...tls } });
  if (proxy.startsWith("socks5"))
    return new Socks5ProxyAgent(proxy, { ...common, requestTls: tls } as object);
  return new ProxyAgent({ ...common, uri: proxy, requestTls: tls });
}

/** One HTTP request. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** A stream is read once, so such a request is never repeated. */
  readonly body?: string | AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
}

/** Resolves when the response begins. Rejects with the signal's reason, or with undici's error. */
export async function ask(dispatcher: Dispatcher, { method, url, headers, body, signal }: HttpRequest) {
  signal.throwIfAborted();
  return request(url, {
    dispatcher,
    method,
    headers: { ...headers },
    signal,
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : Readable.from(body) }),
  });
}
