import {
  ApiError,
  Session as CloudSession,
  callText,
  type HttpAnswer,
  jsonIn,
  jsonRequest,
  keepSecret,
  messageOf,
  OddAnswer,
  pageText,
  type SaidFault,
  type SessionOptions,
  type Unsent,
} from "@nodeyard/driver";
import type { Clock } from "@nodeyard/runtime";
import { z } from "zod";
import { authBody, type Credential, identityUrl } from "./auth.ts";
import { type Catalog, catalogSchema } from "./catalog.ts";

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

/** What a session is made of. */
export interface SessionParts extends Pick<SessionOptions<Token>, "clock" | "random" | "send" | "limiter"> {
  /** Read again for each login, so that a secret that was changed in the file is used without a restart. */
  readonly credential: () => Credential;
  /** Closes what `send` uses. */
  readonly close?: () => Promise<void>;
}

/** One credential of one cloud. */
export class Session extends CloudSession<Token> {
  constructor({ credential, close = async () => {}, ...parts }: SessionParts) {
    super({
      ...{ ...parts, close, fault: faultOf, by: "identity" },
      signIn: async (ask) => logIn(credential(), ask, parts.clock),
      endOf: ({ end }) => end,
      // Services go on with the token of a call: nova after it has accepted a server, glance while an image is uploaded.
      early: 0.2,
      secretsOf: ({ id }) => [id],
    });
  }
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

/** One login. Rejects with ApiError, NoAnswer, OddAnswer or CloudConfigError. */
async function logIn(
  credential: Credential,
  ask: (request: Unsent) => Promise<HttpAnswer>,
  clock: Clock,
): Promise<Token> {
  for (const key of SECRETS) keepSecret(credential.values[key]);
  const url = `${identityUrl(credential.authUrl)}/auth/tokens`;
  const request = jsonRequest("POST", url, { body: authBody(credential) });
  const what = callText(request, "identity");
  const answer = await ask(request);
  if (answer.status >= 400) throw new ApiError(what, answer, faultOf(answer));
  const id = answer.headers["x-subject-token"];
  if (id === undefined) {
    const page = pageText(request, answer);
    throw new OddAnswer(`${what}: the answer ${answer.status}${page} has no X-Subject-Token`);
  }
  try {
    const { issued_at, expires_at, catalog, project } = answerSchema.parse(JSON.parse(answer.text)).token;
    // Computed from the server's own times, because this host's wall clock may be wrong.
    const end = clock.now() + Date.parse(expires_at) - Date.parse(issued_at);
    return { id, catalog, projectId: project?.id ?? null, end: Number.isFinite(end) ? end : null };
  } catch (error) {
    throw new OddAnswer(`${what}: not the answer of identity v3: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * What an error answer says. nova and cinder: {"forbidden": {"code": 403, "message": ..}}. neutron: {"NeutronError": {"type", "message",
 * "detail"}}, whose type is its code, or a string. keystone: {"error": {"message"}}. glance: a page of HTML.
 */
export function faultOf({ text, headers }: HttpAnswer): SaidFault {
  // `x-openstack-request-id` since 2016; nova and glance also have an older name.
  const requestId = headers["x-openstack-request-id"] ?? headers["x-compute-request-id"] ?? null;
  const [inner] = Object.values(jsonIn(text));
  if (typeof inner === "string") return { text: inner, requestId };
  const { message, type } = (inner ?? {}) as { message?: unknown; type?: unknown };
  const codes = typeof type === "string" ? [type] : [];
  return { codes, text: typeof message === "string" ? message : undefined, requestId };
}
