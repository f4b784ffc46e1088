import type { Reply } from "@nodeyard/client";
import { signal } from "@preact/signals";

/** The current session. */
export type Session = Reply<"get_session">;

/** Undefined: not known yet. Null: not logged in. */
export const session = signal<Session | null | undefined>(undefined);

/** Milliseconds by which the server's clock is ahead of this machine's. Ages are computed with the server's clock. */
export let skewMs = 0;

/** An error answer of the server. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Milliseconds for a call. Longer than the slowest answer, that of `explain`, which asks every launcher. */
const DEADLINE_MS = 30_000;

/** Calls REST v1 and returns the reply, undefined when it has no body. Rejects with Refusal. A 401 ends the session of the page. */
export async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  deadlineMs = DEADLINE_MS,
): Promise<T> {
  const csrf = session.peek()?.csrf;
  const response = await fetch(path, {
    method,
    headers: {
      accept: "application/json",
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(method !== "GET" && csrf !== undefined && { "x-nodeyard-csrf": csrf }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(deadlineMs),
  }).catch((error: unknown) => {
    throw new Refusal(0, `the launcher does not answer (${error instanceof Error ? error.message : error})`);
  });
  const date = Date.parse(response.headers.get("date") ?? "");
  if (!Number.isNaN(date)) skewMs = date - Date.now();
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
  if (response.status === 401) session.value = null;
  const problem = (await response.json().catch(() => ({}))) as { readonly detail?: string };
  throw new Refusal(response.status, problem.detail ?? `the launcher answered ${response.status}`);
}

/** All rows of a list. */
export async function list<T>(path: string): Promise<readonly T[]> {
  const rows: T[] = [];
  for (let cursor: string | null = null; ; ) {
    const page = new URLSearchParams({ limit: "1000", ...(cursor !== null && { cursor }) });
    const { items, next } = await call<{ readonly items: readonly T[]; readonly next: string | null }>(
      "GET",
      `${path}${path.includes("?") ? "&" : "?"}${page}`,
    );
    rows.push(...items);
    if (next === null) return rows;
    cursor = next;
  }
}

/** Resumes the session of the cookie, or begins one with the ticket of a link. A ticket is valid for one log-in. */
export async function resumeSession(): Promise<void> {
  const ticket = /^#ticket=([^&]+)$/.exec(location.hash)?.[1];
  // Removed from the address, so that it stays neither in the history nor in a copied link.
  if (ticket !== undefined) location.replace("#/");
  try {
    session.value =
      ticket === undefined
        ? await call<Session>("GET", "/v1/session")
        : await call<Session>("POST", "/v1/session", { ticket: decodeURIComponent(ticket) });
  } catch (error) {
    session.value = null;
    if (ticket !== undefined || !(error instanceof Refusal) || error.status !== 401) throw error;
  }
}

/** Logs in by a token and reloads the page, so that no data of an earlier session remains in it. */
export async function logIn(token: string): Promise<void> {
  await call("POST", "/v1/session", {}, { authorization: `Bearer ${token}` });
  location.reload();
}

export async function logOut(): Promise<void> {
  await call("DELETE", "/v1/session");
  location.reload();
}

/** Whether the role may hold and delete nodes and build images (docs/design/rights.md). */
export function mayOperate(): boolean {
  const role = session.value?.role;
  return role === "operator" || role === "admin";
}

/** Whether the role may request nodes. */
export function mayLease(): boolean {
  return session.value?.role === "user" || mayOperate();
}

/** Whether the session sees all labels and all tenants. */
export function seesEverything(): boolean {
  return session.value?.labels.includes("*") === true && session.value.tenants.includes("*");
}
