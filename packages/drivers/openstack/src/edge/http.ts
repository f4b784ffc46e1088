import { proxyOf } from "@nodeyard/driver";
import { ask, dispatcherOf } from "@nodeyard/driver/http";
import type { HttpRequest, HttpResponse, TlsOptions, Transport } from "../client/index.ts";

/** Connections to one service at once. */
const CONNECTIONS = 16;

/**
 * An HTTP client with persistent connections, through the proxy that the environment names for an address. It limits only the time of
 * connecting; callers set all other limits.
 */
export function connect(tls: TlsOptions): Transport {
  const agents = new Map<string | null, ReturnType<typeof dispatcherOf>>();
  const agentOf = ({ url }: HttpRequest) => {
    const proxy = proxyOf(url, process.env, "requests");
    const agent = agents.get(proxy) ?? dispatcherOf(tls, proxy, CONNECTIONS);
    agents.set(proxy, agent);
    return agent;
  };
  return {
    send: (one) => send(agentOf(one), one),
    close: async () => void (await Promise.all([...agents.values()].map((agent) => agent.close()))),
  };
}

/** One exchange with its whole body. */
async function send(...one: Parameters<typeof ask>): Promise<HttpResponse> {
  const answer = await ask(...one);
  const text = await answer.body.text();
  const single = Object.entries(answer.headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value[0]! : value] as const],
  );
  return { status: answer.statusCode, headers: Object.fromEntries(single), text };
}
