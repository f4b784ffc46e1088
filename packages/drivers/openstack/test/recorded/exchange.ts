import type { HttpRequest, HttpResponse } from "../../src/client/index.ts";

/** A request and the answer that a real cloud gave, without what is secret or names the host. */
export interface Exchange {
  readonly method: string;
  /** Path and query behind the service's name: "compute/v2.1/servers". */
  readonly at: string;
  /** Sent body, parsed; bytes of a stream are counted only. */
  readonly sent: unknown;
  readonly microversion: string | null;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export interface Recording {
  readonly exchanges: readonly Exchange[];
  readonly outcome: unknown;
}

/** Services by the last digit of their port, as testing/openstack/up.sh lays them out. */
const SERVICES = ["identity", "image", "placement", "compute", "network"];
const KEPT = ["retry-after", "x-openstack-request-id", "x-subject-token"];

export async function exchangeOf(
  request: HttpRequest,
  sent: unknown,
  answer: HttpResponse,
): Promise<Exchange> {
  const headers = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => KEPT.includes(name)));
  if (headers["x-subject-token"] !== undefined) headers["x-subject-token"] = "token";
  return {
    method: request.method,
    at: place(request.url),
    sent: request.url.endsWith("/auth/tokens") ? null : sent,
    microversion: request.headers["openstack-api-version"] ?? null,
    status: answer.status,
    headers,
    // nova makes up a password for each server.
    body: parsed(answer.text.replace(/("adminPass": )"[^"]*"/, '$1"secret"')),
  };
}

/** What two requests must share to be the same. */
export function keyOf(exchange: Pick<Exchange, "method" | "at" | "sent" | "microversion">): string {
  return JSON.stringify([exchange.method, exchange.at, exchange.sent, exchange.microversion]);
}

export function place(url: string): string {
  const { port, pathname, search } = new URL(url);
  return `${SERVICES[Number(port) % 10] ?? port}${pathname}${search}`;
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
