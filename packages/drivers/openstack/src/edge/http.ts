import { Readable } from "node:stream";
import { proxyOf } from "@nodeyard/driver";
import { Agent, type Dispatcher, ProxyAgent, request, Socks5ProxyAgent } from "undici";
import type { HttpRequest, HttpResponse, TlsOptions, Transport } from "../client/index.ts";

/** Connections to one service at once. */
const CONNECTIONS = 16;
/** Time for TCP and TLS, milliseconds. */
const CONNECT_MS = 15_000;

/**
 * An HTTP client with persistent connections, through the proxy that the environment names for an address. It limits only the time of
 * connecting; callers set all other limits.
 */
export function connect({ verify, ca, cert, key }: TlsOptions): Transport {
  const tls = {
    rejectUnauthorized: verify,
    ...(ca === null ? {} : { ca }),
    ...(cert === null ? {} : { cert }),
    ...(key === null ? {} : { key }),
  };
  // An upload or a slow listing may take longer than undici's five minutes.
  const common = { connections: CONNECTIONS, headersTimeout: 0, bodyTimeout: 0 };
  const made = (proxy: string | null): Dispatcher => {
    if (proxy === null) return new Agent({ ...common, connect: { timeout: CONNECT_MS, ...tls } });
    if (proxy.startsWith("socks5"))
      return new Socks5ProxyAgent(proxy, { ...common, requestTls: tls } as object);
    return new ProxyAgent({ ...common, uri: proxy, requestTls: tls });
  };
  const agents = new Map<string | null, Dispatcher>();
  const agentOf = ({ url }: HttpRequest) => {
    const proxy = proxyOf(url, process.env, "requests");
    const agent = agents.get(proxy) ?? made(proxy);
    agents.set(proxy, agent);
    return agent;
  };
  return {
    send: (one) => send(agentOf(one), one),
    close: async () => void (await Promise.all([...agents.values()].map((agent) => agent.close()))),
  };
}

/** One exchange with its whole body. Rejects with the signal's reason, or with undici's error. */
async function send(
  agent: Dispatcher,
  { method, url, headers, body, signal }: HttpRequest,
): Promise<HttpResponse> {
  signal.throwIfAborted();
  const answer = await request(url, {
    dispatcher: agent,
    method,
    headers: { ...headers },
    signal,
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : Readable.from(body) }),
  });
  const text = await answer.body.text();
  const single = Object.entries(answer.headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value[0]! : value] as const],
  );
  return { status: answer.statusCode, headers: Object.fromEntries(single), text };
}
