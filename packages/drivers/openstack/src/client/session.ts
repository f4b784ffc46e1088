import {
  type FailedTry,
  type HttpAnswer,
  type HttpCall,
  HttpCalls,
  NoAnswer,
  type RateLimiter,
  RenewedValue,
  safeRetry,
  type Wire,
} from "@nodeyard/driver";
import type { Clock, Random } from "@nodeyard/runtime";
import type { z } from "zod";
import type { Credential } from "./auth.ts";
import { faultOf } from "./errors.ts";
import { logIn, type Token } from "./keystone.ts";

/** A call as a service makes it. The session adds the token, the rate limit and retries. */
export type Call = HttpCall<Token>;

/** What a session is made of. */
export interface SessionParts {
  /** Read again for each login, so that a secret that was changed in the file is used without a restart. */
  readonly credential: () => Credential;
  readonly limiter: RateLimiter;
  readonly send: Wire["send"];
  readonly clock: Clock;
  readonly random: Random;
}

/** Time limit of a login, milliseconds. */
const LOGIN_MS = 30_000;

/**
 * One credential of one cloud: its token, its connections and its rate limit, shared by every provider that uses it. All requests
 * go through `send`. Rejects with ApiError, NoAnswer, CloudConfigError, or the signal's reason. Logins do not count for the rate limit.
 */
export class Session {
  readonly limiter: RateLimiter;
  readonly #parts: SessionParts;
  readonly #tokens: RenewedValue<Token>;
  readonly #calls: HttpCalls<Token>;

  constructor(parts: SessionParts) {
    const { credential, limiter, send, clock } = parts;
    this.#parts = parts;
    this.limiter = limiter;
    this.#tokens = new RenewedValue({
      clock,
      load: async (signal) => logIn(credential(), send, clock, signal),
      endOf: ({ end }) => end,
      // Services go on with the token of a call: nova after it has accepted a server, glance while an image is uploaded.
      early: 0.2,
      secretsOf: ({ id }) => [id],
      loadMs: LOGIN_MS,
      late: () => new NoAnswer(`identity: POST /v3/auth/tokens got no answer: not within ${LOGIN_MS} ms`),
    });
    this.#calls = new HttpCalls({
      ...{ clock, send, limiter, fault: faultOf },
      login: (signal) => this.token(signal),
      refused: (token) => this.#tokens.replace(token),
      again: (failed) => this.#again(failed),
    });
  }

  /** Sends a request; resolves with any answer below 300. */
  send(call: Call): Promise<HttpAnswer> {
    return this.#calls.call(call, (answer) => answer);
  }

  /** As `send`, and checks the answer's body against the schema. Rejects with OddAnswer when it does not fit. */
  json<S extends z.ZodType>(call: Call, schema: S): Promise<z.infer<S>> {
    return this.#calls.json(call, schema);
  }

  /** The present token, or that of a login, which goes on for others when this caller's signal aborts. */
  async token(signal: AbortSignal): Promise<Token> {
    signal.throwIfAborted();
    return this.#tokens.get(signal);
  }

  close(reason: Error): void {
    this.#tokens.close(reason);
  }

  #again(failed: FailedTry): number | null {
    // A login that failed, or a full queue at the rate limit, is not repeated here: the callers try again.
    if (failed.request === undefined) return null;
    const { clock, random } = this.#parts;
    const { retryMs, overloaded } = safeRetry(failed, clock.now(), random);
    if (overloaded) this.limiter.refused(retryMs ?? 0);
    return retryMs;
  }
}
