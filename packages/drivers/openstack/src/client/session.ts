import {
  abortable,
  type FailedTry,
  type HttpAnswer,
  type HttpCall,
  HttpCalls,
  type HttpRequest,
  type RateLimiter,
  safeRetry,
  type Wire,
} from "@nodeyard/driver";
import { type Clock, deadline, messageOf, type Random } from "@nodeyard/runtime";
import type { z } from "zod";
import { ApiError, NoAnswer, OddAnswer, strangerOf } from "./errors.ts";
import type { Keystone, Token } from "./keystone.ts";

/** A call as a service makes it. The session adds the token, the rate limit and retries. `request` may throw CloudConfigError. */
export interface Call extends HttpCall<Token> {
  readonly service: string;
}

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
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #calls: HttpCalls<Token, Call>;
  /** Ends logins. Calls end by their own signals. */
  readonly #closed = new AbortController();

  constructor(parts: {
    readonly keystone: Keystone;
    readonly limiter: RateLimiter;
    readonly send: Wire["send"];
    readonly clock: Clock;
    readonly random: Random;
  }) {
    const { keystone, limiter, send, clock, random } = parts;
    this.#keystone = keystone;
    this.limiter = limiter;
    this.#clock = clock;
    this.#random = random;
    this.#calls = new HttpCalls({
      ...{ clock, send, limiter },
      login: (signal) => this.token(signal),
      refused: (token) => keystone.reject(token),
      noAnswer: ({ service }, request, cause) => new NoAnswer(service, request, cause),
      again: (failed) => this.#again(failed),
    });
  }

  /** Sends a request; resolves with any answer below 400. */
  send(call: Call): Promise<HttpAnswer> {
    return this.#calls.call(call, (answer, request) => {
      if (answer.status >= 400) throw new ApiError(call.service, request, answer);
      return answer;
    });
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
      const at = call.request(await this.token(call.signal));
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

  #again(failed: FailedTry): number | null {
    // A login that failed, or a full queue at the rate limit, is not repeated here: the callers try again.
    if (failed.request === undefined) return null;
    const { retryMs, overloaded } = safeRetry(failed, this.#clock.now(), this.#random);
    if (overloaded) this.limiter.refused(retryMs ?? 0);
    return retryMs;
  }
}

const LOGIN: Pick<HttpRequest, "method" | "url"> = { method: "POST", url: "/v3/auth/tokens" };
