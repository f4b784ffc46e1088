import { randomUUID } from "node:crypto";
import type { Clock } from "@nodeyard/runtime";
import type { Answer, Asked } from "./answers.ts";

export const TENANT = "66666666-7777-8888-9999-000000000000";
/** What logs in: any client with this secret, any federated token, and the machine itself. */
export const SECRET = "testing~SECRET.of+the/client";
/** Seconds that a token lasts. */
const TOKEN_S = 3_599;

/** Logins, and the tokens that they gave out. */
export class Logins {
  readonly #clock: Clock;
  readonly #tokens = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Those that were given out. */
  tokens(): readonly string[] {
    return [...this.#tokens.keys()];
  }

  /** Tokens are refused from now on. */
  forget(): void {
    this.#tokens.clear();
  }

  takes(token: string): boolean {
    return (this.#tokens.get(token) ?? 0) > this.#clock.now();
  }

  /** Tokens of both versions of the login, of the metadata service and of App Service; undefined: it is no login. */
  answer({ url, method, headers, body }: Asked): Answer | undefined {
    const { pathname } = url;
    const grant = () => {
      const text = `token-${this.#tokens.size + 1}-${randomUUID()}`;
      this.#tokens.set(text, this.#clock.now() + TOKEN_S * 1_000);
      return {
        ...{ token_type: "Bearer", expires_in: TOKEN_S, ext_expires_in: TOKEN_S, access_token: text },
        expires_on: String(Math.floor(this.#clock.now() / 1_000) + TOKEN_S),
      };
    };
    if (pathname === "/metadata/identity/oauth2/token")
      return headers.metadata === "true"
        ? {
            status: 200,
            body: { ...grant(), expires_in: String(TOKEN_S), resource: url.searchParams.get("resource") },
          }
        : {
            status: 400,
            body: { error: "invalid_request", error_description: "Required metadata header not specified" },
          };
    if (pathname === "/msi/token")
      return headers["x-identity-header"] === undefined
        ? { status: 401, body: { message: "no header" } }
        : { status: 200, body: grant() };
    if (method !== "POST" || !/\/oauth2\/(v2\.0\/)?token$/.test(pathname)) return undefined;
    const form = new URLSearchParams(body.toString());
    const refused = (error: string, text: string) => ({
      status: 401,
      body: { error, error_description: `${text} Trace ID: 00000000-0000-0000-0000-000000000000` },
    });
    if (!pathname.startsWith(`/${TENANT}/`))
      return refused("invalid_request", "AADSTS90002: Tenant not found.");
    if (form.get("scope") === null && form.get("resource") === null)
      return refused(
        "invalid_scope",
        "AADSTS70011: The provided value for the input parameter 'scope' is not valid.",
      );
    if (form.get("client_secret") !== SECRET && !form.get("client_assertion"))
      return refused("invalid_client", "AADSTS7000215: Invalid client secret provided.");
    return { status: 200, body: grant() };
  }
}
