import { isSecureUrl } from "@nodeyard/config";
import { type Clock, deadline, errorClass, issueText, messageOf } from "@nodeyard/runtime";
import { createLocalJWKSet, type JWTVerifyGetKey } from "jose";
import { z } from "zod";

/** The JSON at a URL. Rejects with an Error that says why not. */
export type FetchJson = (url: string, signal: AbortSignal) => Promise<unknown>;

/** The keys of an issuer are unknown, so that its tokens cannot be checked. */
export class IssuerAway extends errorClass("api.issuer_away") {}

/** For both questions together, milliseconds. */
const ANSWER_MS = 5_000;
/** Keys are read again after this; milliseconds, as those below. */
const FRESH_MS = 10 * 60_000;
/** How long keys are valid while the issuer does not answer, milliseconds: a key that it has withdrawn must expire. */
const STALE_MS = 3_600_000;
/** The shortest time between two fetches for an unknown key, milliseconds, so that clients cannot cause calls to the issuer at will. */
const BETWEEN_MS = 30_000;
/** After a failure nobody asks again for so long, milliseconds: each call with a token would. */
const RETRY_MS = 5_000;

const discoverySchema = z.object({ issuer: z.string(), jwks_uri: z.string() });
const keysSchema = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });

/** The signing keys of one issuer (OpenID Connect Discovery 1.0; RFC 7517), kept, and read again when it changes them. */
export class IssuerKeys {
  /** Its URL, as tokens have it in `iss`. */
  readonly #issuer: string;
  readonly #clock: Clock;
  readonly #fetchJson: FetchJson;
  /** Undefined: they have never been read. */
  #keys: JWTVerifyGetKey | undefined;
  /** Monotonic milliseconds, as the next. */
  #readAt = 0;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** Why the last fetch failed. */
  #why = "";
  /** The fetch under way. */
  #reading: Promise<JWTVerifyGetKey> | undefined;

  constructor(issuer: string, clock: Clock, fetchJson: FetchJson) {
    this.#issuer = issuer;
    this.#clock = clock;
    this.#fetchJson = fetchJson;
  }

  /** The key that a token names. Rejects with IssuerAway, and as jose does where there is none. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const keys = await this.#current();
    try {
      return await keys(header, token);
    } catch (error) {
      const isUnknown = (error as { code?: string }).code === "ERR_JWKS_NO_MATCHING_KEY";
      if (!isUnknown || this.#age() < BETWEEN_MS) throw error;
      return (await this.#read())(header, token);
    }
  };

  /** Milliseconds since the keys were read. */
  #age(): number {
    return this.#clock.monotonic() - this.#readAt;
  }

  /** The keys, fresh, or for a while those that were read last. */
  async #current(): Promise<JWTVerifyGetKey> {
    if (this.#keys !== undefined && this.#age() < FRESH_MS) return this.#keys;
    try {
      return await this.#read();
    } catch (error) {
      if (this.#keys !== undefined && this.#age() < STALE_MS) return this.#keys;
      throw error;
    }
  }

  /** All who wait share one question, and for a while its failure. */
  #read(): Promise<JWTVerifyGetKey> {
    if (this.#clock.monotonic() - this.#failedAt < RETRY_MS) return Promise.reject(this.#away());
    this.#reading ??= this.#ask().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Two questions: where the keys are, and the keys. Sets the keys only when both were answered. */
  async #ask(): Promise<JWTVerifyGetKey> {
    using limit = deadline(
      this.#clock,
      ANSWER_MS,
      () => new Error(`no answer within ${ANSWER_MS / 1_000} s`),
    );
    try {
      // OpenID Connect Discovery 1.0, section 4.1.
      const base = this.#issuer.replace(/\/$/, "");
      const found = await this.#fetchJson(`${base}/.well-known/openid-configuration`, limit.signal);
      const { issuer, jwks_uri: uri } = checked(discoverySchema, found);
      // Section 4.3 demands it: else a document of another issuer would give its keys.
      if (issuer !== this.#issuer) throw new Error(`it calls itself ${JSON.stringify(issuer)}`);
      if (!isSecureUrl(uri)) throw new Error(`its keys are at ${JSON.stringify(uri)}, which is not https`);
      const { keys } = checked(keysSchema, await this.#fetchJson(uri, limit.signal));
      this.#keys = createLocalJWKSet({ keys });
      this.#readAt = this.#clock.monotonic();
      return this.#keys;
    } catch (error) {
      this.#failedAt = this.#clock.monotonic();
      this.#why = messageOf(error);
      throw this.#away(error);
    }
  }

  #away(cause?: unknown): IssuerAway {
    return new IssuerAway(
      `cannot read the keys of the issuer ${this.#issuer}: ${this.#why}; try again soon`,
      {
        cause,
      },
    );
  }
}

/** An issuer's answer in the form of `schema`. Throws an Error that names the first place and value that are wrong. */
function checked<T>(schema: z.ZodType<T>, answer: unknown): T {
  const { data, error } = schema.safeParse(answer);
  if (error !== undefined) throw new Error(issueText(error.issues[0]!, answer, { where: "its answer" }));
  return data as T;
}
