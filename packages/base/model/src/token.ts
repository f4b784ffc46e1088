import { number, numberOrNull, oneOf, optional, strict, text, type ValuesOf, word, words } from "./fields.ts";
import { ownRecord } from "./own-record.ts";

/** Folder of the tokens of API clients, by name. */
export const TOKENS = "/nodeyard/tokens";

/** Roles of API clients (docs/design/rights.md). */
export const apiRoles = ["viewer", "user", "operator", "admin"] as const;
/** A role of API clients. */
export type ApiRole = (typeof apiRoles)[number];

/** In a list of labels or tenants: no limit. */
export const ANY = "*";

// Strict fields: a record without one of them gives no rights, because a damaged limit must not mean "no limit".
const fields = {
  role: strict<ApiRole>("role", oneOf(...apiRoles)),
  /** SHA-256 of the secret, hexadecimal. */
  hash: strict("hash", word),
  /** Labels and tenants to which the token is limited; ANY: no limit. */
  labels: strict("labels", words),
  tenants: strict("tenants", words),
  /** Tree time in milliseconds, as for the other times. */
  created: optional("created", 0, number),
  /** Who made it, for people. */
  createdBy: optional("created_by", "", word),
  expires: strict("expires", number),
  /** Null unless the token was revoked. */
  revoked: strict("revoked", numberOrNull),
  revokedBy: optional("revoked_by", null, text),
};
const kind = ownRecord("token", fields);

/** The rights of a named API client. The secret itself is not stored, only its hash. */
export type Token = { readonly name: string } & ValuesOf<typeof fields>;

/** Path of a token. */
export function tokenPath(name: string): string {
  return `${TOKENS}/${name}`;
}

/** `stored`: the record as read, when it is changed. */
export function encodeToken(token: Token, stored?: Uint8Array): Uint8Array {
  return kind.encode(token, stored);
}

/** @throws RecordError for a record that this release cannot read completely; it gives no rights */
export function decodeToken(name: string, data: Uint8Array): Token {
  return { name, ...kind.decode(name, data) };
}
