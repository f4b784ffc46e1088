import { number, numberOrNull, oneOf, optional, strict, type ValuesOf, word, words } from "./fields.ts";
import { ownRecord } from "./own-record.ts";
import { type ApiRole, apiRoles } from "./token.ts";

/** Where the logins of browsers are kept, by id. */
export const LOGINS = "/nodeyard/logins";

/** `ticket`: opens one session, once. `session`: what the cookie of a browser names. */
export const loginKinds = ["ticket", "session"] as const;
/** One of loginKinds. */
export type LoginKind = (typeof loginKinds)[number];

/** What a client showed to be let in (docs/design/rights.md). */
export const claimOrigins = ["socket", "listener", "token", "issuer"] as const;
/** One of claimOrigins. */
export type ClaimOrigin = (typeof claimOrigins)[number];

// As with tokens: what lacks one of these gives no rights.
const claimFields = {
  origin: strict<ClaimOrigin>("origin", oneOf(...claimOrigins)),
  /** Says whether it is still the same: the hash of the token, or of what the configuration says of the issuer; of the socket nothing. */
  credential: strict("credential", word),
  /** When it ends, tree time in milliseconds; null: not by itself. */
  limit: strict("limit", numberOrNull),
  /** Of the client, as the audit has it. */
  name: strict("name", word),
  role: strict<ApiRole>("role", oneOf(...apiRoles)),
  /** Labels and tenants that it is limited to; ANY: no limit. */
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

/** What a client showed, and the rights that it has by it. */
export type Claim = ValuesOf<typeof claimFields>;
/** A ticket or a session of a browser, with the rights of the claim that it was made by. Its secret is stored nowhere. */
export type Login = { readonly id: string } & ValuesOf<typeof fields>;

/** Where the login of this id is. */
export function loginPath(id: string): string {
  return `${LOGINS}/${id}`;
}

/** The bytes to store. */
export function encodeLogin(login: Login): Uint8Array {
  return codec.encode(login);
}

/** @throws RecordError for a record that gives no rights, because this release cannot read all of it */
export function decodeLogin(id: string, data: Uint8Array): Login {
  return { id, ...codec.decode(id, data) };
}
