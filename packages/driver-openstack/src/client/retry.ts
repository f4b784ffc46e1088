import { backoff, type Random } from "@nodeyard/runtime";
import type { HttpRequest, HttpResponse } from "./transport.ts";

/** How a try ended; `undefined` response: there was no answer. */
export interface Outcome {
  readonly method: HttpRequest["method"];
  readonly response: HttpResponse | undefined;
  /** 0 for the first try. */
  readonly attempt: number;
  /** A body that was streamed cannot be sent again. */
  readonly repeatable: boolean;
}

export interface RetryDecision {
  /** Try again after this long, milliseconds; null: this is the answer. */
  readonly retryMs: number | null;
  /** The server had too much; others on the same credential must wait as well. */
  readonly overloaded: boolean;
}

const RETRIES = 4;
const BASE_MS = 500;
const CAP_MS = 15_000;
/** A Retry-After beyond this is the caller's to know of, not ours to sleep through. */
const LONGEST_WAIT_MS = 60_000;

const LATER = new Set([413, 429, 503]);
const BROKEN = new Set([500, 502, 504]);

/**
 * What to do after a try. 429, and 413 or 503 with Retry-After, say that nothing was done: any call is tried again. After other
 * failures of the server nobody knows, so only calls that may be repeated are.
 */
export function judge(outcome: Outcome, now: number, random: Random): RetryDecision {
  const { response, method, attempt, repeatable } = outcome;
  const asked = response === undefined ? null : retryAfter(response, now);
  const overloaded =
    response !== undefined && (response.status === 429 || (LATER.has(response.status) && asked !== null));
  const idempotent = method !== "POST" && method !== "PATCH";
  const passing = response === undefined || LATER.has(response.status) || BROKEN.has(response.status);
  const again = repeatable && (overloaded || (idempotent && passing));
  if (!again || attempt >= RETRIES || (asked ?? 0) > LONGEST_WAIT_MS) return { retryMs: null, overloaded };
  return { retryMs: asked ?? backoff(random, attempt, BASE_MS, CAP_MS), overloaded };
}

/** `Retry-After` as milliseconds from `now` (wall time): seconds or a date (RFC 9110 10.2.3). Null: none, or not to be read. */
export function retryAfter(response: Pick<HttpResponse, "headers">, now: number): number | null {
  const value = response.headers["retry-after"]?.trim();
  if (value === undefined || value === "") return null;
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1_000;
  // Date.parse takes "-1" for a year.
  const at = /^[a-z]/i.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
