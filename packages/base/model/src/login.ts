import { number, numberOrNull, oneOf, optional, strict, type ValuesOf, word, words } from "./fields.ts";
import { ownRecord } from "./own-record.ts";
import { type ApiRole, apiRoles } from "./token.ts";

/** Folder of browser logins, by id. */
export const LOGINS = "/nodeyard/logins";

/** `ticket`: logs one browser in, once. `session`: named by the cookie of a browser. */
export const loginKinds = ["ticket", "session"] as const;
/** One of loginKinds. */
export type LoginKind = (typeof loginKinds)[number];

/** How a client proved its rights (docs/design/rights.md). */
export const claimOrigins = ["socket", "listener", "token", "issuer"] as const;
/** One of claimOrigins. */
export type ClaimOrigin = (typeof claimOrigins)[number];

// All strict, as for tokens: a record that lacks one of them must give no rights.
const claimFields = {
  origin: strict<ClaimOrigin>("origin", oneOf(...claimOrigins)),
  /** Hash of the token, or of the issuer's configuration, by which a change is noticed; empty for the socket. */
  credential: strict("credential", word),
  /** Tree time in milliseconds at which the claim ends; null when it has no end of its own. */
  limit: strict("limit", numberOrNull),
  /** Name of the client, as the audit shows it. */
  name: strict("name", word),
  role: strict<ApiRole>("role", oneOf(...apiRoles)),
  /** Labels and tenants to which the claim is limited; ANY: no limit. */
  labels: strict("labels", words),
  tenants: strict("tenants", words),
};
const fields = {
  ...claimFields,
  kind: strict<LoginKind>("kind", oneOf(...loginKinds)),
  /** SHA-256 of the secret, hexadecimal. */
  hash: strict("hash", word),
  /** Tree time, milliseconds. */
  created: optional("created", 0, number),
  expires: strict("expires", number),
};
const codec = ownRecord("login", fields);

/** What a client proved, and the rights that it has by it. */
export type Claim = ValuesOf<typeof claimFields>;
/** A ticket or a browser session, with the rights of the claim from which it was made. Its secret is not stored. */
export type Login = { readonly id: string } & ValuesOf<typeof fields>;

/** Path of a login. */
export function loginPath(id: string): string {
  return `${LOGINS}/${id}`;
}

/** The bytes to store. */
export function encodeLogin(login: Login): Uint8Array {
  return codec.encode(login);
}

/** @throws RecordError for a record that this release cannot read completely; it gives no rights */
export function decodeLogin(id: string, data: Uint8Array): Login {
  return { id, ...codec.decode(id, data) };
}
