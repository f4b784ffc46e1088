import { createSign } from "node:crypto";
import { httpCall, refusal, SystemError } from "@nodeyard/connect";
import { type Clock, keepSecret } from "@nodeyard/runtime";
import { z } from "zod";

/** Who signs in: a person's token, or an App. */
export type Credentials =
  | { readonly token: string }
  | { readonly clientId: string; readonly installation: number; readonly key: string };

/** Where the scale sets of an account are served, and the right to call there. */
export interface Service {
  readonly url: string;
  readonly token: string;
}

const tokenSchema = z.object({ token: z.string() });
const serviceSchema = z.object({ url: z.string(), token: z.string() });

/** Before its end a token is renewed, milliseconds. */
const EARLY_MS = 60_000;
/** GitHub takes an App's token of ten minutes at most, and its clock may be behind. */
const [BEHIND_SECONDS, APP_SECONDS] = [60, 540];

/**
 * The connection of an account with the service of Actions, renewed before its token ends. The steps are those of GitHub's own client
 * (https://github.com/actions/scaleset): a registration token by the credentials, and with it the address and token of the service.
 */
export class SignIn {
  readonly #clock: Clock;
  readonly #url: URL;
  readonly #credentials: Credentials;
  #service: Promise<Service> | undefined;
  #token: string | undefined;
  /** Wall time at which it has to be renewed. */
  #renewAt = 0;

  constructor(clock: Clock, url: string, credentials: Credentials) {
    this.#clock = clock;
    this.#url = new URL(url);
    this.#credentials = credentials;
  }

  /** Rejects with SystemError. */
  service(): Promise<Service> {
    if (this.#service === undefined || this.#clock.now() >= this.#renewAt) {
      this.#renewAt = Number.POSITIVE_INFINITY;
      const asked = this.#ask();
      this.#service = asked;
      asked.then(
        (service) => {
          this.#token = service.token;
        },
        () => {
          if (this.#service === asked) this.#service = undefined;
        },
      );
    }
    return this.#service;
  }

  /** The next call signs in anew, unless that was done since: this token was refused. */
  forget(token: string): void {
    if (token === this.#token) this.#service = undefined;
  }

  async #ask(): Promise<Service> {
    const bearer =
      "token" in this.#credentials ? this.#credentials.token : await this.#appToken(this.#credentials);
    const { token } = await this.#post(
      `${this.#account()}/actions/runners/registration-token`,
      `Bearer ${bearer}`,
      undefined,
      tokenSchema,
    );
    const body = { url: this.#url.href, runner_event: "register" };
    const service = await this.#post(
      "actions/runner-registration",
      `RemoteAuth ${token}`,
      body,
      serviceSchema,
    );
    keepSecret(service.token);
    this.#renewAt = endOf(service.token) - EARLY_MS;
    return { ...service, url: service.url.replace(/\/+$/, "") };
  }

  /** An installation's token, which an App asks for with a token that it signs itself. */
  async #appToken({
    clientId,
    installation,
    key,
  }: Extract<Credentials, { clientId: string }>): Promise<string> {
    const now = Math.floor(this.#clock.now() / 1_000);
    const claims = { iss: clientId, iat: now - BEHIND_SECONDS, exp: now + APP_SECONDS };
    const unsigned = [{ alg: "RS256", typ: "JWT" }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
      .join(".");
    const signature = createSign("RSA-SHA256").update(unsigned).sign(key, "base64url");
    const path = `app/installations/${installation}/access_tokens`;
    const { token } = await this.#post(path, `Bearer ${unsigned}.${signature}`, undefined, tokenSchema);
    keepSecret(token);
    return token;
  }

  async #post<T>(path: string, authorization: string, body: unknown, schema: z.ZodType<T>): Promise<T> {
    const call = {
      method: "POST",
      url: `${this.#api()}/${path}`,
      headers: { authorization, accept: "application/vnd.github+json", "user-agent": "nodeyard" },
      body,
    } as const;
    const answer = await httpCall(this.#clock, call);
    const { success, data } = schema.safeParse(answer.json);
    if (answer.status >= 300 || !success) throw refusal(call, answer);
    return data;
  }

  /** github.com, its sites for companies, and servers of one's own have the API at different places. */
  #api(): string {
    const { protocol, host } = this.#url;
    if (host === "github.com" || host.endsWith(".ghe.com")) return `${protocol}//api.${host}`;
    return `${protocol}//${host}/api/v3`;
  }

  #account(): string {
    const [first, second, ...more] = this.#url.pathname.split("/").filter((part) => part !== "");
    if (first === undefined || more.length > 0)
      throw new SystemError(`${this.#url.href} is not an organization, OWNER/REPOSITORY or enterprises/NAME`);
    if (second === undefined) return `orgs/${first}`;
    return first === "enterprises" ? `enterprises/${second}` : `repos/${first}/${second}`;
  }
}

/** Wall time in milliseconds at which a JWT ends. Throws SystemError. */
function endOf(token: string): number {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as {
      exp?: unknown;
    };
    if (typeof exp === "number") return exp * 1_000;
  } catch {
    // No JSON: see below.
  }
  throw new SystemError("the service of GitHub Actions gave a token without an end");
}
