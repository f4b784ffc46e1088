import { Agent, type Dispatcher, ProxyAgent, request, Socks5ProxyAgent } from "undici";
import type { HttpRequest, Route, Transport } from "../client/index.ts";

/** Most connections to one API server. Each watch occupies one. */
const CONNECTIONS = 24;
/** Time for TCP and TLS, milliseconds. Without it a server that drops packets would use up the whole time of an attempt. */
const CONNECT_MS = 15_000;

/** HTTP with persistent connections. Only the timeout of connecting is set here; callers bound their calls by signals. */
export function connect(route: Route): Transport {
  const dispatcher = dispatcherOf(route);
  return {
    async send(one) {
      const { statusCode, body } = await ask(dispatcher, one);
      return { status: statusCode, text: await body.text() };
    },
    async stream(one) {
      const { statusCode, body } = await ask(dispatcher, one);
      return { status: statusCode, body, text: () => body.text() };
    },
    close: () => dispatcher.close(),
  };
}

/**
 * Connections with a route's certificates, directly or through its proxy. undici's own timeouts are off, because a watch may be
 * silent for a minute.
 */
function dispatcherOf({ verify, ca, cert, key, serverName, proxy }: Route): Dispatcher {
  const tls = {
    rejectUnauthorized: verify,
    ...(ca === null ? {} : { ca }),
    ...(cert === null ? {} : { cert }),
    ...(key === null ? {} : { key }),
    ...(serverName === null ? {} : { servername: serverName }),
  };
  // HTTP/2 is off: undici's implementation crashes the process when a stream is aborted while its client closes.
  const common = { connections: CONNECTIONS, headersTimeout: 0, bodyTimeout: 0, allowH2: false };
  if (proxy === null) return new Agent({ ...common, connect: { timeout: CONNECT_MS, ...tls } });
  if (proxy.startsWith("socks5"))
    return new Socks5ProxyAgent(proxy, { ...common, requestTls: tls } as object);
  return new ProxyAgent({ ...common, uri: proxy, requestTls: tls });
}

async function ask(dispatcher: Dispatcher, { method, url, headers, body, signal }: HttpRequest) {
  signal.throwIfAborted();
  return request(url, {
    dispatcher,
    method,
    headers: { ...headers },
    signal,
    ...(body === undefined ? {} : { body }),
  });
}
