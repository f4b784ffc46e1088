import type { IssuerConfig } from "@nodeyard/config";
import type { Claim } from "@nodeyard/model";
import { hashOf } from "@nodeyard/operations";
import { type Clock, messageOf } from "@nodeyard/runtime";
import { decodeJwt, errors, type JWTPayload, jwtVerify } from "jose";
import { type FetchJson, IssuerKeys } from "./issuer-keys.ts";
import { ApiError } from "./problems.ts";

/** Asymmetric signatures, which only the issuer can make: neither `none` nor a secret that its clients share. */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
/** By how much clocks may differ, seconds. */
const TOLERANCE = 30;
/** Three parts; the last is empty where there is no signature. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;
/** The name of a client: it is shown in lists and logs, so it has neither spaces nor control characters. */
const CLIENT = /^[\x21-\x7e]{1,200}$/;

interface Issuer {
  readonly config: IssuerConfig;
  /** Kept over reloads, so that a reload fetches nothing. */
  readonly keys: IssuerKeys;
  /** Of the configuration: rights that were given by another one have ended. */
  readonly digest: string;
}

/**
 * Checks JSON Web Tokens (RFC 7519) of the configured issuers, and gives them the rights of the first matching grant. One for all
 * listeners.
 */
export class Issuers {
  readonly #clock: Clock;
  readonly #fetchJson: FetchJson;
  #all: readonly Issuer[] = [];

  constructor(clock: Clock, fetchJson: FetchJson) {
    this.#clock = clock;
    this.#fetchJson = fetchJson;
  }

  /** From now on these count. Keys of an issuer that stays are kept. */
  configure(configs: readonly IssuerConfig[]): void {
    const before = new Map(this.#all.map(({ config, keys }) => [config.issuer, keys]));
    this.#all = configs.map((config) => ({
      config,
      keys: before.get(config.issuer) ?? new IssuerKeys(config.issuer, this.#clock, this.#fetchJson),
      digest: hashOf(JSON.stringify(config)),
    }));
  }

  /** Whether the configuration that a claim was made by is in force. */
  knows({ credential }: Claim): boolean {
    return this.#all.some(({ digest }) => digest === credential);
  }

  /** Undefined when the text is no JSON Web Token or no issuer is configured. Rejects with ApiError or IssuerAway. */
  async claim(text: string): Promise<Claim | undefined> {
    if (this.#all.length === 0 || !JWT.test(text)) return undefined;
    const { issuer, payload } = await this.#verified(text);
    const { config, digest } = issuer;
    const client = payload[config.nameClaim];
    if (typeof client !== "string" || !CLIENT.test(client))
      throw refused(`its claim ${config.nameClaim} is no name: 1 to 200 printable characters without spaces`);
    // All claims of a grant have to match, each by one of its values; the first grant counts, so that their order is the
    // operator's.
    const grant = config.grants.find(({ claims }) =>
      Object.entries(claims).every(([name, wanted]) =>
        valuesOf(payload, name).some((one) => wanted.includes(one)),
      ),
    );
    if (grant === undefined)
      throw new ApiError(
        403,
        "api.no_grant",
        `${config.name} knows ${client}, but no entry of webapp.oidc.grants gives such a client rights`,
      );
    return {
      // The tolerance counts here, too: a token that is accepted must give a claim that has not ended yet.
      ...{ origin: "issuer", credential: digest, limit: (payload.exp! + TOLERANCE) * 1_000 },
      ...{
        name: `oidc:${config.name}:${client}`,
        role: grant.role,
        labels: grant.labels,
        tenants: grant.tenants,
      },
    };
  }

  /** The issuer and the claims of a token whose signature, audience and time are right. Rejects with ApiError or IssuerAway. */
  async #verified(text: string): Promise<{ readonly issuer: Issuer; readonly payload: JWTPayload }> {
    try {
      // Not verified yet: it only says whose keys are to be asked.
      const { iss } = decodeJwt(text);
      const issuer = this.#all.find(({ config }) => config.issuer === iss);
      if (issuer === undefined) throw refused(`no issuer ${JSON.stringify(iss)} is configured`);
      const { payload } = await jwtVerify(text, issuer.keys.find, {
        issuer: issuer.config.issuer,
        audience: issuer.config.audience,
        algorithms: ALGORITHMS,
        clockTolerance: TOLERANCE,
        currentDate: new Date(this.#clock.now()),
        requiredClaims: ["exp"],
      });
      return { issuer, payload };
    } catch (error) {
      if (error instanceof errors.JWTExpired)
        throw new ApiError(401, "api.jwt_expired", "the JSON Web Token has expired: get a new one");
      throw error instanceof errors.JOSEError ? refused(messageOf(error)) : error;
    }
  }
}

/** The reason is cut: it may quote a claim, which is as long as the client likes. */
function refused(why: string): ApiError {
  return new ApiError(401, "api.bad_jwt", `the JSON Web Token is refused: ${why.slice(0, 300)}`);
}

/** The values of the claim of this name, else of the nested claim that the name describes with dots. */
function valuesOf(payload: JWTPayload, name: string): readonly string[] {
  const at = Object.hasOwn(payload, name) ? payload[name] : name.split(".").reduce<unknown>(inside, payload);
  return (Array.isArray(at) ? at : [at]).filter((one) => SIMPLE.has(typeof one)).map(String);
}

/** Types of values that a grant can name. */
const SIMPLE: ReadonlySet<string> = new Set(["string", "number", "boolean"]);

/** Own keys only: `constructor` of a claim is none. */
function inside(value: unknown, key: string): unknown {
  const isMapping = typeof value === "object" && value !== null && Object.hasOwn(value, key);
  return isMapping ? (value as Record<string, unknown>)[key] : undefined;
}
