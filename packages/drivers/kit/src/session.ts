import { defined } from "@nodeyard/runtime";
import type { DriverContext } from "./contract.ts";
import { callText, NoAnswer, noAnswer } from "./faults.ts";
import { HttpCalls, type HttpCallsOptions, safely } from "./http-calls.ts";
import { RateLimiter } from "./limits/rate-limiter.ts";
import { RenewedValue, type RenewedValueOptions } from "./limits/renewed-value.ts";
import type { Account } from "./limits/shared-accounts.ts";
import type { HttpAnswer, HttpRequest, Unsent, Wire } from "./wire.ts";

/** What a session has of its provider and of its host: parts of the `DriverContext`, and connections. */
export type SessionHost = Pick<DriverContext, "clock" | "random" | "observe"> & Pick<Wire, "send" | "close">;

/** How a cloud is signed in to and called. */
export interface SessionOptions<Token>
  extends Omit<SessionHost, "send">,
    Pick<RenewedValueOptions<Token>, "endOf" | "early" | "secretsOf">,
    Pick<HttpCallsOptions<Token>, "fault"> {
  /** Without a token for a sign-in. */
  readonly send: (request: HttpRequest, token?: Token) => Promise<HttpAnswer>;
  /** Name of the far end of a sign-in, for messages: "identity". */
  readonly by: string;
  /** Signs in anew, without retries: the calls that wait for it have their own. `ask` rejects with NoAnswer. */
  readonly signIn: (ask: (request: Unsent) => Promise<HttpAnswer>, signal: AbortSignal) => Promise<Token>;
  /** Time limit of a sign-in, milliseconds. Default 30,000. */
  readonly signInMs?: number;
  /** Which calls are repeated, and when. Default: `safely`. */
  readonly again?: (limiter: RateLimiter) => HttpCallsOptions<Token>["again"];
  readonly limiter?: RateLimiter;
}

/**
 * One credential of one cloud: its token, its connections and its rate limit, shared by every provider that uses it. Calls reject with
 * ApiError, NoAnswer, OddAnswer, the errors of the sign-in, or the signal's reason. Sign-ins do not count for the rate limit.
 */
export class Session<Token> implements Account {
  readonly limiter: RateLimiter;
  readonly calls: HttpCalls<Token>;
  readonly #options: SessionOptions<Token>;
  readonly #tokens: RenewedValue<Token>;

  constructor(options: SessionOptions<Token>) {
    const { clock, send, by, signIn, signInMs = 30_000, endOf, early, secretsOf } = options;
    this.#options = options;
    this.#tokens = new RenewedValue({
      ...{ clock, endOf, loadMs: signInMs },
      ...defined({ early, secretsOf }),
      load: (signal) =>
        signIn(async (request) => {
          try {
            return await send({ ...request, signal });
          } catch (error) {
            throw signal.aborted ? signal.reason : noAnswer(callText(request, by), error);
          }
        }, signal),
      late: () => new NoAnswer(`${by} got no answer: not within ${signInMs} ms`),
    });
    // `SharedAccounts` sets the interval right after this, and again whenever a provider comes or goes.
    this.limiter = options.limiter ?? new RateLimiter({ clock, intervalMs: 0 });
    this.calls = this.callsAt(this.limiter);
  }

  /** Calls that the cloud counts apart, with a rate limit of their own. */
  callsAt(limiter: RateLimiter): HttpCalls<Token> {
    const { clock, random, send, fault, observe } = this.#options;
    const { again = (at) => safely(clock, random, at) } = this.#options;
    return new HttpCalls<Token>({
      ...{ clock, send, limiter, again: again(limiter) },
      ...defined({ fault, observe }),
      login: (signal) => this.token(signal),
      refused: (token) => this.#tokens.replace(token),
    });
  }

  /** The token of the last sign-in, without a look at its age. */
  get last(): Token | undefined {
    return this.#tokens.last;
  }

  /** What the token stands for does not fit any more: the next call signs in anew. */
  refused(): void {
    this.#tokens.refused();
  }

  /** The present token, or that of a sign-in, which goes on for others when this caller's signal aborts. */
  async token(signal: AbortSignal): Promise<Token> {
    signal.throwIfAborted();
    return this.#tokens.get(signal);
  }

  limit(intervalMs: number): void {
    this.limiter.configure(intervalMs);
  }

  async close(): Promise<void> {
    this.#tokens.close(new NoAnswer("the credential is not used any more"));
    await this.#options.close();
  }
}
