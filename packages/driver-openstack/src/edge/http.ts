import { Readable } from "node:stream";
import { Agent, request } from "undici";
import type { HttpRequest, HttpResponse, TlsOptions, Transport } from "../client/index.ts";

/** Connections to one service at once. */
const CONNECTIONS = 16;
/** Time for TCP and TLS, milliseconds. */
const CONNECT_MS = 15_000;

/** An HTTP client with persistent connections. It limits only the time of connecting; callers set all other limits. */
export function connect({ verify, ca, cert, key }: TlsOptions): Transport {
  const agent = new Agent({
    connections: CONNECTIONS,
    // An upload or a slow listing may take longer than undici's five minutes.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: {
      timeout: CONNECT_MS,
      rejectUnauthorized: verify,
      ...(ca === null ? {} : { ca }),
      ...(cert === null ? {} : { cert }),
      ...(key === null ? {} : { key }),
    },
  });
  return { send: (one) => send(agent, one), close: () => agent.destroy() };
}

/** One exchange with its whole body. Rejects with the signal's reason, or with undici's error. */
async function send(
  agent: Agent,
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
