import type { HttpRequest, Wire } from "@nodeyard/driver";
import { type Clock, keepSecret, messageOf } from "@nodeyard/runtime";
import { z } from "zod";
import { authBody, type Credential, identityUrl } from "./auth.ts";
import { type Catalog, catalogSchema } from "./catalog.ts";
import { ApiError, NoAnswer, OddAnswer } from "./errors.ts";

export interface Token {
  /** Value of the header `x-auth-token`. */
  readonly id: string;
  readonly catalog: Catalog;
  /** Null for a token without a project. */
  readonly projectId: string | null;
  /** Monotonic time in milliseconds from which a new token is fetched. */
  readonly renewAt: number;
  /** Monotonic time of its end, milliseconds. */
  readonly end: number;
}

/** The fields of the answer that are read (Identity API v3, "Password authentication with scoped authorization"). Times are ISO 8601. */
const answerSchema = z.object({
  token: z.object({
    issued_at: z.string(),
    expires_at: z.string(),
    catalog: catalogSchema.default([]),
    project: z.object({ id: z.string() }).nullish(),
  }),
});

/** Keys of `auth` whose values no message may quote. */
const SECRETS = ["password", "token", "application_credential_secret"] as const;
/** A token is renewed when this share of its lifetime has passed. */
const USED_SHARE = 0.8;
/** Least time between two logins after a token was refused, milliseconds. Without it a cloud that refuses every token would be flooded. */
const LEAST_MS = 1_000;

/**
 * The login of one credential, shared by all of its users. The credential is read again for each login, so a secret that was
 * changed in the file is used without a restart.
 */
export class Keystone {
  readonly #send: Wire["send"];
  readonly #clock: Clock;
  readonly #credential: () => Credential;
  #token: Token | undefined;
  /** Monotonic time of the last login, milliseconds. */
  #since = Number.NEGATIVE_INFINITY;
  /** The login in progress, which concurrent callers share. */
  #login: Promise<Token> | undefined;

  constructor(parts: {
    readonly send: Wire["send"];
    readonly clock: Clock;
    readonly credential: () => Credential;
  }) {
    this.#send = parts.send;
    this.#clock = parts.clock;
    this.#credential = parts.credential;
  }

  /**
   * A valid token. `signal` aborts the login itself, so pass one that belongs to no single caller. Rejects with ApiError,
   * NoAnswer, OddAnswer, CloudConfigError or the signal's reason; the next call logs in again.
   */
  async token(signal: AbortSignal): Promise<Token> {
    if (this.#token !== undefined && this.#clock.monotonic() < this.#token.renewAt) return this.#token;
    this.#login ??= this.#authenticate(signal).finally(() => {
      this.#login = undefined;
    });
    const old = this.#token;
    return this.#login.catch((error) => {
      // A file that is being written, or a keystone that restarts: the token still serves, and the next call logs in again.
      if (old === undefined || this.#token !== old || this.#clock.monotonic() >= old.end) throw error;
      return old;
    });
  }

  /** Reports that a service refused the token. False: the token is so new that another one would be refused too. */
  reject(token: Token): boolean {
    // Another caller has reported it already, so there is a new one, or will be.
    if (this.#token !== token) return true;
    if (this.#clock.monotonic() - this.#since < LEAST_MS) return false;
    this.#token = undefined;
    return true;
  }

  /** One login, without retries: the calls that wait for it have their own. */
  async #authenticate(signal: AbortSignal): Promise<Token> {
    const credential = this.#credential();
    for (const key of SECRETS) keepSecret(credential.values[key]);
    const request: HttpRequest = {
      method: "POST",
      url: `${identityUrl(credential.authUrl)}/auth/tokens`,
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify(authBody(credential)),
      signal,
    };
    const response = await this.#send(request).catch((error) => {
      throw signal.aborted ? signal.reason : new NoAnswer("identity", request, error);
    });
    if (response.status !== 201) throw new ApiError("identity", request, response);
    const id = response.headers["x-subject-token"];
    if (id === undefined) throw new OddAnswer("identity", request, "the answer has no X-Subject-Token");
    keepSecret(id);
    const { token } = parse(request, response.text);
    // Computed from the server's own times, because this host's wall clock may be wrong.
    const life = Date.parse(token.expires_at) - Date.parse(token.issued_at);
    const now = this.#clock.monotonic();
    this.#since = now;
    this.#token = {
      id,
      catalog: token.catalog,
      projectId: token.project?.id ?? null,
      // Unreadable times: a minute is short enough for any token, and does not flood keystone.
      renewAt: now + (Number.isFinite(life) ? Math.max(LEAST_MS, life * USED_SHARE) : 60_000),
      end: now + (Number.isFinite(life) ? life : 0),
    };
    return this.#token;
  }
}

function parse(request: HttpRequest, text: string): z.infer<typeof answerSchema> {
  try {
    return answerSchema.parse(JSON.parse(text));
  } catch (error) {
    throw new OddAnswer("identity", request, `not the answer of identity v3: ${messageOf(error)}`, error);
  }
}
