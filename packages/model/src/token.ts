import { number, numberOrNull, oneOf, optional, strict, text, type ValuesOf, word, words } from "./fields.ts";
import { ownRecord } from "./own-record.ts";

/** Where the tokens of API clients are kept, by name. */
export const TOKENS = "/nodeyard/tokens";

/** What a client of the API may do, each with a purpose of its own (docs/design/rights.md). */
export const apiRoles = ["viewer", "user", "operator", "admin"] as const;
/** A role of API clients. */
export type ApiRole = (typeof apiRoles)[number];

/** In a list of labels or tenants: all of them. */
export const ANY = "*";

// A record without one of these gives no rights at all: a damaged limit must not read as "no limit".
const fields = {
  role: strict<ApiRole>("role", oneOf(...apiRoles)),
  /** SHA-256 of the secret, hexadecimal. */
  hash: strict("hash", word),
  /** Labels and tenants that it is limited to; ANY: no limit. */
  labels: strict("labels", words),
  tenants: strict("tenants", words),
  /** Tree time, milliseconds, like the times below. */
  created: optional("created", 0, number),
  /** Who made it, for people. */
  createdBy: optional("created_by", "", word),
  expires: strict("expires", number),
  /** Null: it was not revoked. */
  revoked: strict("revoked", numberOrNull),
  revokedBy: optional("revoked_by", null, text),
};
const kind = ownRecord("token", fields);

/** The right of a named client of the API. The token itself is stored nowhere. */
export type Token = { readonly name: string } & ValuesOf<typeof fields>;

/** Where the token of this name is. */
export function tokenPath(name: string): string {
  return `${TOKENS}/${name}`;
}

/** `stored`: the record as it was read, of one that is changed. */
export function encodeToken(token: Token, stored?: Uint8Array): Uint8Array {
  return kind.encode(token, stored);
}

/** @throws RecordError for a record that gives no rights, because this release cannot read all of it */
export function decodeToken(name: string, data: Uint8Array): Token {
  return { name, ...kind.decode(name, data) };
}
