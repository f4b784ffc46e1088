import {
  ApiError,
  callText,
  type HttpRequest,
  noAnswer,
  OddAnswer,
  pageText,
  type Wire,
} from "@nodeyard/driver";
import { type Clock, keepSecret, messageOf } from "@nodeyard/runtime";
import { z } from "zod";
import { authBody, type Credential, identityUrl } from "./auth.ts";
import { type Catalog, catalogSchema } from "./catalog.ts";
import { faultOf } from "./errors.ts";

/** What a login gives. */
export interface Token {
  /** Value of the header `x-auth-token`. */
  readonly id: string;
  readonly catalog: Catalog;
  /** Null for a token without a project. */
  readonly projectId: string | null;
  /** Wall time of its end, milliseconds; null: not known. */
  readonly end: number | null;
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

/** One login, without retries: the calls that wait for it have their own. Rejects with ApiError, NoAnswer, OddAnswer or CloudConfigError. */
export async function logIn(
  credential: Credential,
  send: Wire["send"],
  clock: Clock,
  signal: AbortSignal,
): Promise<Token> {
  for (const key of SECRETS) keepSecret(credential.values[key]);
  const request: HttpRequest = {
    method: "POST",
    url: `${identityUrl(credential.authUrl)}/auth/tokens`,
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(authBody(credential)),
    signal,
  };
  const what = callText(request, "identity");
  const answer = await send(request).catch((error) => {
    throw signal.aborted ? signal.reason : noAnswer(what, error);
  });
  if (answer.status >= 400) throw new ApiError(what, answer, faultOf(answer));
  const id = answer.headers["x-subject-token"];
  if (id === undefined) {
    const page = pageText(request, answer);
    throw new OddAnswer(`${what}: the answer ${answer.status}${page} has no X-Subject-Token`);
  }
  try {
    const { issued_at, expires_at, catalog, project } = answerSchema.parse(JSON.parse(answer.text)).token;
    // Computed from the server's own times, because this host's wall clock may be wrong.
    const life = Date.parse(expires_at) - Date.parse(issued_at);
    return {
      ...{ id, catalog },
      projectId: project?.id ?? null,
      end: Number.isFinite(life) ? clock.now() + life : null,
    };
  } catch (error) {
    throw new OddAnswer(`${what}: not the answer of identity v3: ${messageOf(error)}`, { cause: error });
  }
}
