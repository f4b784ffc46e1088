import { backoff, type Random } from "@nodeyard/runtime";
import type { HttpRequest, HttpResponse } from "./transport.ts";

/** Result of one try. `response` is undefined when there was no answer. */
export interface Outcome {
  readonly method: HttpRequest["method"];
  readonly response: HttpResponse | undefined;
  /** 0 for the first try. */
  readonly attempt: number;
  /** False for a streamed body, which cannot be sent again. */
  readonly repeatable: boolean;
}

export interface RetryDecision {
  /** Delay before the next try, milliseconds; null: no further try. */
  readonly retryMs: number | null;
  /** The server was overloaded, so other calls with the same credential must wait as well. */
  readonly overloaded: boolean;
}

/** Tries after the first one. */
const RETRIES = 4;
/** First pause and longest pause between two tries without Retry-After, milliseconds. */
const BASE_MS = 500;
const CAP_MS = 15_000;
/** A longer Retry-After is returned to the caller as an error instead of waiting. */
const LONGEST_WAIT_MS = 60_000;

/** Statuses with which a server may refuse to work at present. 413 was nova's answer to too many calls before 429. */
const LATER = new Set([413, 429, 503]);
/** Statuses after which it is unknown whether the server did something. */
const BROKEN = new Set([500, 502, 504]);

/**
 * Decides what follows a try. 429, and 413 or 503 with Retry-After, mean that the server did nothing, so every call is retried. After
 * other errors of the server the outcome is unknown, so only calls that are safe to repeat are retried.
 */
export function judge(outcome: Outcome, now: number, random: Random): RetryDecision {
  const { response, method, attempt, repeatable } = outcome;
  const asked = response === undefined ? null : retryAfter(response, now);
  const overloaded =
    response !== undefined && (response.status === 429 || (LATER.has(response.status) && asked !== null));
  // PUT and DELETE have the same effect when they are repeated; a repeated POST could make a second server.
  const idempotent = method !== "POST" && method !== "PATCH";
  const passing = response === undefined || LATER.has(response.status) || BROKEN.has(response.status);
  const again = repeatable && (overloaded || (idempotent && passing));
  if (!again || attempt >= RETRIES || (asked ?? 0) > LONGEST_WAIT_MS) return { retryMs: null, overloaded };
  return { retryMs: asked ?? backoff(random, attempt, BASE_MS, CAP_MS), overloaded };
}

/** `Retry-After` in milliseconds from `now` (wall time): seconds or a date (RFC 9110 10.2.3). Null when absent or unreadable. */
export function retryAfter(response: Pick<HttpResponse, "headers">, now: number): number | null {
  const value = response.headers["retry-after"]?.trim();
  if (value === undefined || value === "") return null;
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1_000;
  // A guard, because Date.parse reads "-1" as a year.
  const at = /^[a-z]/i.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
