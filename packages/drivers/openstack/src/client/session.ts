import { abortable, type RateLimiter } from "@nodeyard/driver";
import { type Clock, deadline, defined, messageOf, type Random, sleep } from "@nodeyard/runtime";
import type { z } from "zod";
import { ApiError, NoAnswer, OddAnswer, strangerOf } from "./errors.ts";
import type { Keystone, Token } from "./keystone.ts";
import { judge } from "./retry.ts";
import type { HttpRequest, HttpResponse, Send } from "./transport.ts";

/** A request as a service makes it. The session adds the token, the rate limit and retries. */
export interface Call {
  readonly service: string;
  readonly method: HttpRequest["method"];
  /** The address, once the catalog is known. May throw CloudConfigError. */
  url(token: Token): string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: HttpRequest["body"];
  readonly signal: AbortSignal;
  /** Many callers wait for this call, so it goes before others at the rate limit. */
  readonly first?: boolean;
  /** Time limit of one try, milliseconds; default 60,000. */
  readonly tryMs?: number;
  /** Called after each try with the status, or `none`, the duration in milliseconds, and why there was no reply. */
  readonly observe?: (result: string, ms: number, error?: unknown) => void;
}

/** Default of `tryMs`. */
const TRY_MS = 60_000;
/** Time limit of a login, milliseconds. */
const LOGIN_MS = 30_000;

/**
 * One credential of one cloud: its token, its connections and its rate limit, shared by every provider that uses it. All requests
 * go through `send`. Rejects with ApiError, NoAnswer, CloudConfigError, or the signal's reason. `token` and logins do not count
 * for the rate limit.
 */
export class Session {
  readonly limiter: RateLimiter;
  readonly #keystone: Keystone;
  readonly #send: Send;
  readonly #clock: Clock;
  readonly #random: Random;
  /** Ends logins. Calls end by their own signals. */
  readonly #closed = new AbortController();

  constructor(parts: {
    readonly keystone: Keystone;
    readonly limiter: RateLimiter;
    readonly send: Send;
    readonly clock: Clock;
    readonly random: Random;
  }) {
    this.#keystone = parts.keystone;
    this.limiter = parts.limiter;
    this.#send = parts.send;
    this.#clock = parts.clock;
    this.#random = parts.random;
  }

  /**
   * Sends a request; resolves with any answer below 400. Each try waits for its turn at the rate limit. `judge` decides about
   * retries. A 401 is repeated once with a new token.
   */
  async send(call: Call): Promise<HttpResponse> {
    const repeatable = call.body === undefined || typeof call.body === "string";
    let loggedInAgain = false;
    for (let attempt = 0; ; ) {
      const token = await this.token(call.signal);
      const request = requestOf(call, token);
      const { response, failure } = await this.#try(call, request);
      if (response !== undefined && response.status < 400) {
        // Lets a rate that overload reduced rise again.
        this.limiter.accepted();
        return response;
      }
      if (response?.status === 401 && !loggedInAgain && repeatable && this.#keystone.reject(token)) {
        loggedInAgain = true;
        continue;
      }
      const outcome = { method: call.method, response, attempt: attempt++, repeatable };
      const { retryMs, overloaded } = judge(outcome, this.#clock.now(), this.#random);
      if (overloaded) this.limiter.refused(retryMs ?? 0);
      if (retryMs === null) throw failure ?? new ApiError(call.service, request, response!);
      await sleep(this.#clock, retryMs, call.signal);
    }
  }

  /**
   * As `send`, and checks the answer's body against the schema. Rejects with OddAnswer when it does not fit; the call has taken
   * effect then.
   */
  async json<S extends z.ZodType>(call: Call, schema: S): Promise<z.infer<S>> {
    const response = await this.send(call);
    try {
      return schema.parse(JSON.parse(response.text));
    } catch (error) {
      const at = { method: call.method, url: call.url(await this.token(call.signal)) };
      const answer = `the answer ${response.status}${strangerOf(at, response)}`;
      const why = `${answer} is not what the API promises: ${messageOf(error)}`;
      throw new OddAnswer(call.service, at, why, error);
    }
  }

  /** The present token, or that of a login, which goes on for others when this caller's signal aborts. */
  async token(signal: AbortSignal): Promise<Token> {
    signal.throwIfAborted();
    const late = () => new NoAnswer("identity", LOGIN, new Error(`not within ${LOGIN_MS} ms`));
    // Not the caller's signal: it would end the login of all who wait for it.
    const limit = deadline(this.#clock, LOGIN_MS, late, this.#closed.signal);
    const login = this.#keystone.token(limit.signal).finally(() => limit.cancel());
    return abortable(login, signal);
  }

  close(reason: Error): void {
    this.#closed.abort(reason);
  }

  /** One exchange. No answer is a result, because `judge` decides whether it is repeated; only the caller's abort rejects. */
  async #try(
    call: Call,
    request: Unsent,
  ): Promise<{ readonly response: HttpResponse | undefined; readonly failure?: NoAnswer }> {
    await this.limiter.turn(call.signal, { first: call.first === true });
    const ms = call.tryMs ?? TRY_MS;
    const late = () => new NoAnswer(call.service, request, new Error(`not within ${ms} ms`));
    // The wait for the rate limit is over, so the limit is for the exchange alone.
    const limit = deadline(this.#clock, ms, late, call.signal);
    const began = this.#clock.monotonic();
    const observe = (result: string, error?: unknown) =>
      call.observe?.(result, this.#clock.monotonic() - began, error);
    try {
      const response = await this.#send({ ...request, signal: limit.signal });
      observe(String(response.status));
      return { response };
    } catch (error) {
      const failure = error instanceof NoAnswer ? error : new NoAnswer(call.service, request, error);
      observe("none", call.signal.aborted ? undefined : failure);
      call.signal.throwIfAborted();
      return { response: undefined, failure };
    } finally {
      limit.cancel();
    }
  }
}

/** A request without the signal of its try. */
type Unsent = Omit<HttpRequest, "signal">;

function requestOf(call: Call, token: Token): Unsent {
  return {
    method: call.method,
    url: call.url(token),
    headers: {
      accept: "application/json",
      ...(typeof call.body === "string" ? { "content-type": "application/json" } : {}),
      ...call.headers,
      "x-auth-token": token.id,
    },
    ...defined({ body: call.body }),
  };
}

const LOGIN = { method: "POST", url: "/v3/auth/tokens" } as const;
