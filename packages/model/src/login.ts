import { number, numberOrNull, oneOf, optional, ownRecord, strict, word, words } from "./own-record.ts";
import { type ApiRole, apiRoles } from "./token.ts";

/** Where the logins of browsers are kept, by id. */
export const LOGINS = "/nodeyard/logins";

/** `ticket`: opens one session, once. `session`: what the cookie of a browser names. */
export const loginKinds = ["ticket", "session"] as const;
export type LoginKind = (typeof loginKinds)[number];

/** What a client showed to be let in (docs/design/rights.md). */
export const claimOrigins = ["socket", "listener", "token", "issuer"] as const;
export type ClaimOrigin = (typeof claimOrigins)[number];

/** What a client showed, and the rights that it has by it. */
export interface Claim {
  readonly origin: ClaimOrigin;
  /** Says whether it is still the same: the hash of the token, or of what the configuration says of the issuer; of the socket nothing. */
  readonly credential: string;
  /** When it ends, tree time in milliseconds; null: not by itself. */
  readonly limit: number | null;
  /** Of the client, as the audit has it. */
  readonly name: string;
  readonly role: ApiRole;
  /** Labels and tenants that it is limited to; ANY: no limit. */
  readonly labels: readonly string[];
  readonly tenants: readonly string[];
}

/** A ticket or a session of a browser, with the rights of the claim that it was made by. Its secret is stored nowhere. */
export interface Login extends Claim {
  readonly id: string;
  readonly kind: LoginKind;
  /** SHA-256 of the secret, hexadecimal. */
  readonly hash: string;
  /** Tree time, milliseconds. */
  readonly created: number;
  readonly expires: number;
}

// As with tokens: what lacks one of these gives no rights.
const codec = ownRecord<Omit<Login, "id">>("login", {
  kind: strict("kind", oneOf(...loginKinds)),
  hash: strict("hash", word),
  origin: strict("origin", oneOf(...claimOrigins)),
  credential: strict("credential", word),
  limit: strict("limit", numberOrNull),
  name: strict("name", word),
  role: strict("role", oneOf(...apiRoles)),
  labels: strict("labels", words),
  tenants: strict("tenants", words),
  created: optional("created", 0, number),
  expires: strict("expires", number),
});

/** Where the login of this id is. */
export function loginPath(id: string): string {
  return `${LOGINS}/${id}`;
}

export function encodeLogin({ id: _, ...fields }: Login): Uint8Array {
  return codec.encode(fields);
}

/** @throws RecordError for a record that gives no rights, because this release cannot read all of it */
export function decodeLogin(id: string, data: Uint8Array): Login {
  return { id, ...codec.decode(id, data) };
}
