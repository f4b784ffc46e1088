import { readFileSync, writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { HttpAnswer, HttpRequest } from "@nodeyard/driver";

/** A request and the answer that a real cloud gave, without what is secret or names the host. */
export interface Exchange {
  readonly method: string;
  /** Path and query behind the service's name: "compute/v2.1/servers". */
  readonly at: string;
  /** Sent body, parsed; bytes of a stream are counted only. Absent: none, or one with a password. */
  readonly sent?: unknown;
  readonly microversion?: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export interface Recording {
  readonly exchanges: readonly Exchange[];
  readonly outcome: unknown;
}

/** By scenario. A cloud that is polled answers the same again and again: each answer's body is kept once. */
interface Kept {
  readonly bodies: unknown[];
  readonly scenarios: Record<
    string,
    { exchanges: (Omit<Exchange, "body"> & { body: number })[]; outcome: unknown }
  >;
}

const FILE = new URL("./recorded.json", import.meta.url);

export function readRecordings(): Readonly<Record<string, Recording>> {
  const { bodies, scenarios }: Kept = JSON.parse(readFileSync(FILE, "utf8"));
  return Object.fromEntries(
    Object.entries(scenarios).map(([name, { exchanges, outcome }]) => [
      name,
      { exchanges: exchanges.map((each) => ({ ...each, body: bodies[each.body] })), outcome },
    ]),
  );
}

export function writeRecordings(recordings: Readonly<Record<string, Recording>>): void {
  const kept: Kept = { bodies: [], scenarios: {} };
  const keep = (body: unknown) => {
    const known = kept.bodies.findIndex((each) => isDeepStrictEqual(each, body));
    return known >= 0 ? known : kept.bodies.push(body) - 1;
  };
  for (const [name, { exchanges, outcome }] of Object.entries(recordings))
    kept.scenarios[name] = {
      exchanges: exchanges.map((each) => ({ ...each, body: keep(each.body) })),
      outcome,
    };
  writeFileSync(FILE, JSON.stringify(kept));
}

/** Services by the last digit of their port, as testing/openstack/up.sh lays them out. */
const SERVICES = ["identity", "image", "placement", "compute", "network"];
const KEPT = ["retry-after", "x-openstack-request-id", "x-subject-token"];

export async function exchangeOf(request: HttpRequest, sent: unknown, answer: HttpAnswer): Promise<Exchange> {
  const headers = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => KEPT.includes(name)));
  if (headers["x-subject-token"] !== undefined) headers["x-subject-token"] = "token";
  return {
    ...questionOf(request, sent),
    status: answer.status,
    headers,
    // nova makes up a password for each server, keystone the rest for each token.
    body: parsed(
      answer.text
        .replace(/("adminPass": )"[^"]*"/, '$1"secret"')
        .replace(/("audit_ids": \[)"[^"]*"/, '$1"audit"')
        .replace(/("issued_at": )"[^"]*"/, '$1"2026-11-21T17:30:00.000000Z"')
        .replace(/("expires_at": )"[^"]*"/, '$1"2026-11-22T17:30:00.000000Z"'),
    ),
  };
}

type Question = Pick<Exchange, "method" | "at" | "sent" | "microversion">;

/** What of a request is recorded. */
export function questionOf(request: HttpRequest, sent: unknown): Question {
  const microversion = request.headers["openstack-api-version"];
  return {
    method: request.method,
    at: place(request.url),
    ...(sent === null || request.url.endsWith("/auth/tokens") ? {} : { sent }),
    ...(microversion === undefined ? {} : { microversion }),
  };
}

/** What two requests must share to be the same. */
export function keyOf({ method, at, sent, microversion }: Question): string {
  return JSON.stringify([method, at, sent, microversion]);
}

function place(url: string): string {
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
