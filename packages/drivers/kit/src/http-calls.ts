import { backoff, type Clock, deadline, messageOf, type Random, sleep } from "@nodeyard/runtime";
import type { z } from "zod";
import type { ApiCall } from "./contract.ts";
import { ApiError, callText, noAnswer, OddAnswer, pageText, type SaidFault } from "./faults.ts";
import type { RateLimiter } from "./limits/rate-limiter.ts";
import { type HttpAnswer, type HttpRequest, isStream, type Unsent } from "./wire.ts";

/** A call of a cloud's API. */
export interface HttpCall<Login> {
  /** As in `ApiCall`. */
  readonly operation: string;
  /** The service that is called, for messages. Default: it need not be named. */
  readonly service?: string;
  /** Made for each try, since a new login may name another address. */
  readonly request: (login: Login) => Unsent;
  readonly signal: AbortSignal;
  /** Many callers wait for this call, so it goes before others at the rate limit. */
  readonly first?: boolean;
  /** Time limit of one try, milliseconds; default 60,000. */
  readonly tryMs?: number;
  /** As in `DriverContext`. */
  readonly observe?: ((call: ApiCall) => void) | undefined;
}

/** A try that failed, for the decision about another one. */
export interface FailedTry {
  readonly failure: unknown;
  /** What was sent; undefined: nothing was, as without a login, or with too many calls at the rate limit. */
  readonly request: Unsent | undefined;
  /** Undefined: there was none. */
  readonly answer: HttpAnswer | undefined;
  /** 0 for the first try. */
  readonly attempt: number;
  /** Since the call began, milliseconds. */
  readonly sinceMs: number;
}

/** How a cloud is called. */
export interface HttpCallsOptions<Login> {
  readonly clock: Clock;
  readonly send: (request: HttpRequest, login: Login) => Promise<HttpAnswer>;
  readonly login: (signal: AbortSignal) => Promise<Login>;
  /** Reports that a login was refused. False: another one would be refused as well. */
  readonly refused: (login: Login) => boolean;
  /** What an answer of 300 or more says, since no API redirects; the call rejects with an ApiError then. Default: `read` judges all answers. */
  readonly fault?: (answer: HttpAnswer) => SaidFault;
  /** Milliseconds until another try; null: none, and the call rejects with the failure. */
  readonly again: (failed: FailedTry) => number | null;
  readonly limiter?: RateLimiter;
  /** Of calls that have none of their own. */
  readonly observe?: HttpCall<Login>["observe"];
}

/** Default of `tryMs`. */
const TRY_MS = 60_000;

/**
 * Calls of one cloud with one credential: each try has its turn at the rate limit, a time limit and an observation, a refused login is
 * renewed once, and `again` decides what is repeated. Logins do not count for the rate limit.
 */
export class HttpCalls<Login> {
  readonly #options: HttpCallsOptions<Login>;

  constructor(options: HttpCallsOptions<Login>) {
    this.#options = options;
  }

  /** The value that `read` makes of the answer; what it throws is a failure of the try. Rejects with the last one, or the signal's reason. */
  async call<T>(call: HttpCall<Login>, read: (answer: HttpAnswer, request: Unsent) => T): Promise<T> {
    const { clock, again, refused } = this.#options;
    const { signal } = call;
    const began = clock.monotonic();
    let isRenewed = false;
    for (let attempt = 0; ; ) {
      const { value, login, ...tried } = await this.#try(call, read);
      if (tried.failure === undefined) return value as T;
      const isRepeatable = !isStream(tried.request?.body);
      if (tried.answer?.status === 401 && !isRenewed && isRepeatable && refused(login as Login)) {
        isRenewed = true;
        continue;
      }
      const pauseMs = again({ ...tried, attempt: attempt++, sinceMs: clock.monotonic() - began });
      if (pauseMs === null || !isRepeatable) throw tried.failure;
      await sleep(clock, pauseMs, signal);
    }
  }

  /** The body of the answer, as far as the schema has it. Rejects with OddAnswer when it does not fit; the call has taken effect then. */
  async json<S extends z.ZodType>(call: HttpCall<Login>, schema: S): Promise<z.infer<S>> {
    const [answer, request] = await this.call(call, (...both) => both);
    try {
      return schema.parse(JSON.parse(answer.text));
    } catch (error) {
      const what = `${callText(request, call.service)}: the answer ${answer.status}${pageText(request, answer)}`;
      throw new OddAnswer(`${what} is not what the API promises: ${messageOf(error)}`, { cause: error });
    }
  }

  /** One exchange. Only the caller's abort rejects. */
  async #try<T>(call: HttpCall<Login>, read: (answer: HttpAnswer, request: Unsent) => T) {
    const { clock, limiter, login: logIn, send, fault } = this.#options;
    const { signal, first = false, tryMs = TRY_MS, operation, observe = this.#options.observe } = call;
    let login: Login | undefined;
    let request: Unsent | undefined;
    let answer: HttpAnswer | undefined;
    try {
      login = await logIn(signal);
      const ready = call.request(login);
      await limiter?.turn(signal, { first });
      request = ready;
      // The waits for login and rate limit are over, so the limit is for the exchange alone.
      using limit = deadline(clock, tryMs, () => new Error(`not within ${tryMs} ms`), signal);
      const start = clock.monotonic();
      let unanswered: unknown;
      let value: T;
      try {
        answer = await send({ ...request, signal: limit.signal }, login);
        if (fault && answer.status >= 300) throw refusal(call, request, answer, fault(answer));
        value = read(answer, request);
      } catch (error) {
        const isLost = answer === undefined && !signal.aborted;
        const failure = isLost ? noAnswer(callText(request, call.service), error) : error;
        // A redirect, or a success that cannot be read, is no reply of the API either, but that of a proxy or of a login to a network.
        if (!signal.aborted && (answer === undefined || answer.status < 400)) unanswered = failure;
        throw failure;
      } finally {
        const ms = clock.monotonic() - start;
        observe?.({ operation, result: String(answer?.status ?? "none"), ms, error: unanswered });
      }
      // Lets a rate that overload reduced rise again.
      limiter?.accepted();
      return { value, login, request, answer, failure: undefined };
    } catch (failure) {
      signal.throwIfAborted();
      return { value: undefined, login, request, answer, failure };
    }
  }
}

/** The fields of a success. Anything else is an OddAnswer: taken for a list of nothing, it would look like an empty cloud. */
export function answeredJson<T extends object>(answer: HttpAnswer, request: Unsent): T {
  try {
    const value: unknown = JSON.parse(answer.text);
    if (typeof value === "object" && value !== null) return value as T;
  } catch {
    // The parser's error quotes the answer.
  }
  const what = `${callText(request)}: the answer ${answer.status}${pageText(request, answer)}`;
  throw new OddAnswer(`${what} is no JSON of the API`);
}

/** The error for an error answer. A page of HTML without a code and a request id does not come from the cloud. */
function refusal(
  { service }: Pick<HttpCall<never>, "service">,
  request: Unsent,
  answer: HttpAnswer,
  said: SaidFault,
): ApiError {
  const page = said.requestId == null && !said.codes?.length ? pageText(request, answer) : "";
  return new ApiError(callText(request, service), answer, { ...said, by: page });
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
 * What follows a try of a cloud whose calls are repeated only where that is safe. 429, and 413 or 503 with Retry-After, mean that the server
 * did nothing, so every call is repeated, and the server is overloaded: other calls with the same credential must wait as well. After other
 * errors of the server the outcome is unknown, so only calls that have the same effect again are repeated. `now`: wall time, milliseconds.
 */
export function safeRetry(
  { request, answer, attempt }: Pick<FailedTry, "request" | "answer" | "attempt">,
  now: number,
  random: Random,
  isSafe = isIdempotent,
): { readonly retryMs: number | null; readonly overloaded: boolean } {
  const asked = answer === undefined ? null : retryAfter(answer, now);
  const status = answer?.status ?? 0;
  const overloaded = status === 429 || (LATER.has(status) && asked !== null);
  const isPassing = answer === undefined || LATER.has(status) || BROKEN.has(status);
  const isAgain = overloaded || (request !== undefined && isSafe(request) && isPassing);
  if (!isAgain || attempt >= RETRIES || (asked ?? 0) > LONGEST_WAIT_MS) return { retryMs: null, overloaded };
  return { retryMs: asked ?? backoff(random, attempt, BASE_MS, CAP_MS), overloaded };
}

/** PUT and DELETE have the same effect when they are repeated; a repeated POST could make a second server. */
function isIdempotent({ method }: Unsent): boolean {
  return method !== "POST" && method !== "PATCH";
}

/**
 * `again` of such a cloud. Too many calls slow down the limiter. `isSafe`: of which calls it does not matter whether the server did something,
 * as where names or ids of requests make each take effect once.
 */
export function safely(
  clock: Clock,
  random: Random,
  limiter?: RateLimiter,
  isSafe = isIdempotent,
): HttpCallsOptions<never>["again"] {
  return (tried) => {
    // A login that failed, or a full queue at the rate limit, is not repeated here: the callers try again.
    if (tried.request === undefined) return null;
    const { retryMs, overloaded } = safeRetry(tried, clock.now(), random, isSafe);
    if (overloaded) limiter?.refused(retryMs ?? 0);
    return retryMs;
  };
}

/** `Retry-After` in milliseconds from `now` (wall time): seconds or a date (RFC 9110 10.2.3). Null when absent or unreadable. */
export function retryAfter(answer: Pick<HttpAnswer, "headers">, now: number): number | null {
  const value = answer.headers["retry-after"]?.trim();
  if (value === undefined || value === "") return null;
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1_000;
  // A guard, because Date.parse reads "-1" as a year.
  const at = /^[a-z]/i.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
