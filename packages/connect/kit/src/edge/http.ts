import { type Clock, deadline, messageOf } from "@nodeyard/runtime";
import { SystemError } from "../errors.ts";

/** One call of another system's HTTP. */
export interface HttpCall {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Milliseconds for the whole call; default 30 s. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** What the system answered. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The text as JSON; undefined: it is none. */
  readonly json: unknown;
}

/** Most characters of an answer that a message quotes. */
const QUOTED = 300;

/** Sends one call. Any answer is a result. Rejects with SystemError when there is none in time, and with the reason of `signal`. */
export async function httpCall(clock: Clock, call: HttpCall): Promise<HttpAnswer> {
  const { method, url, headers, body, timeoutMs = 30_000, signal } = call;
  const where = `${method} ${url.replace(/\?.*/, "")}`;
  const late = () => new SystemError(`${where} was not answered within ${timeoutMs / 1_000} s`);
  const limit = deadline(clock, timeoutMs, late, signal);
  try {
    const reply = await fetch(url, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // Another server must not get the credentials.
      redirect: "error",
      signal: limit.signal,
    });
    const text = await reply.text();
    return { status: reply.status, headers: reply.headers, text, json: parsed(text) };
  } catch (error) {
    if (limit.signal.aborted) throw limit.signal.reason;
    const cause = (error as { readonly cause?: unknown }).cause ?? error;
    throw new SystemError(`${where} is not answered: ${messageOf(cause)}`, { cause });
  } finally {
    limit.cancel();
  }
}

/** The error of an answer that is none of those expected. */
export function refusal({ method, url }: HttpCall, { status, text }: HttpAnswer): SystemError {
  return new SystemError(
    `${method} ${url.replace(/\?.*/, "")} answered ${status}: ${text.slice(0, QUOTED).replace(/\s+/g, " ")}`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
