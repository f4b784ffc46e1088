import { apiRoles, type Claim, LOGINS, loginPath } from "@nodeyard/model";
import { checkLogin, createLogin, csrfOf, endLogin, loginId, treeNow } from "@nodeyard/operations";
import { z } from "zod";
import type { Known } from "../known.ts";
import type { Session } from "./admission.ts";
import { ApiError, noToken } from "./problems.ts";
import { type Entry, EVERYBODY, OPERATORS, type Route, route } from "./route.ts";

/** What the page has to know of the session. `csrf` is computed, and stored nowhere. */
const sessionSchema = z.object({
  name: z.string(),
  role: z.enum(apiRoles),
  labels: z.array(z.string()),
  tenants: z.array(z.string()),
  csrf: z.string().describe("for the header `X-Nodeyard-CSRF` of calls that change something"),
  expires: z.string(),
});

const rowOf = ({ claim: { name, role, labels, tenants }, text, expires }: Omit<Session, "id">) => ({
  ...{ name, role, labels, tenants },
  csrf: csrfOf(text),
  expires: new Date(expires).toISOString(),
});

/** Data of all logins, by id. */
function loginsIn({ view }: Known): ReadonlyMap<string, Uint8Array> {
  // A scan of Nodeyard's own records: log-ins are rare.
  const entries = [...view.own].filter(([path]) => path.startsWith(`${LOGINS}/`));
  return new Map(entries.map(([path, { data }]) => [path.slice(LOGINS.length + 1), data]));
}

/** The claim that a ticket was made by; the ticket is used up. Throws ApiError. */
async function spend(ticket: string, { view, handles }: Known, entry: Entry): Promise<Claim> {
  const id = loginId(ticket);
  const data = id === undefined ? undefined : view.own.get(loginPath(id))?.data;
  const login = checkLogin(ticket, "ticket", data, treeNow(handles));
  const claim = login && entry.standing(login);
  // Of several who come at once one deletes it.
  if (claim !== undefined && (await endLogin(handles, login!.id))) return claim;
  throw new ApiError(
    401,
    "api.bad_ticket",
    'the ticket was used, has expired or is none: "nodeyard dashboard" prints a new link',
  );
}

/** Browsers log in and out (docs/design/rights.md, "Decision"). */
export const sessionRoutes: readonly Route[] = [
  route({
    id: "create_session",
    method: "POST",
    path: "/v1/session",
    summary: "Log a browser in, by a token or a ticket: its cookie stands for it from then on",
    roles: EVERYBODY,
    access: "open",
    body: z.strictObject({ ticket: z.string().max(200).optional() }).optional(),
    status: 201,
    reply: sessionSchema,
    handle: async ({ body, known }, _, entry) => {
      const { handles } = known;
      const claim = body?.ticket === undefined ? entry.claim : await spend(body.ticket, known, entry);
      if (claim === undefined) throw noToken(entry.shown);
      const { text, login } = await createLogin(handles, "session", claim, loginsIn(known));
      // End the browser's former session, so that a cookie planted by somebody else cannot be used after the log-in.
      if (entry.session !== undefined) await endLogin(handles, entry.session.id);
      entry.enter(claim, text, login.expires);
      return rowOf({ claim, text, expires: login.expires });
    },
  }),
  route({
    id: "get_session",
    method: "GET",
    path: "/v1/session",
    summary: "Who is logged in",
    roles: EVERYBODY,
    access: "cookie",
    status: 200,
    reply: sessionSchema,
    // `access: "cookie"`: without a session the call is refused before.
    handle: async (_, __, { session }) => rowOf(session!),
  }),
  route({
    id: "end_session",
    method: "DELETE",
    path: "/v1/session",
    summary: "Log out: the session ends at once, its streams of events included",
    roles: EVERYBODY,
    access: "cookie",
    status: 204,
    // The record goes first: where the cookie stays in a copy, it names nothing any more.
    handle: async ({ known }, _, entry) => {
      await endLogin(known.handles, entry.session!.id);
      entry.leave();
    },
  }),
  route({
    id: "create_ticket",
    method: "POST",
    path: "/v1/session/tickets",
    summary:
      "Make a ticket that logs one browser in, once, with the rights of the caller: for a link to the page",
    roles: OPERATORS,
    status: 201,
    reply: z.object({
      ticket: z.string(),
      expires: z.string(),
      address: z.string().nullable().describe("where this process listens by TCP"),
    }),
    handle: async ({ known, parts }, _, { claim, session }) => {
      const { text, login } = await createLogin(
        known.handles,
        "ticket",
        (claim ?? session?.claim)!,
        loginsIn(known),
      );
      return { ticket: text, expires: new Date(login.expires).toISOString(), address: parts.address() };
    },
  }),
];
