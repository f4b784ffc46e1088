import { text } from "./fields.ts";
import { number, numberOrNull, oneOf, optional, ownRecord, strict, word, words } from "./own-record.ts";

/** Where the tokens of API clients are kept, by name. */
export const TOKENS = "/nodeyard/tokens";

/** What a client of the API may do, each with a purpose of its own (docs/design/rights.md). */
export const apiRoles = ["viewer", "user", "operator", "admin"] as const;
/** A role of API clients. */
export type ApiRole = (typeof apiRoles)[number];

/** In a list of labels or tenants: all of them. */
export const ANY = "*";

/** The right of a named client of the API. The token itself is stored nowhere. */
export interface Token {
  readonly name: string;
  readonly role: ApiRole;
  /** SHA-256 of the secret, hexadecimal. */
  readonly hash: string;
  /** Labels and tenants that it is limited to; ANY: no limit. */
  readonly labels: readonly string[];
  readonly tenants: readonly string[];
  /** Tree time, milliseconds, like the times below. */
  readonly created: number;
  /** Who made it, for people. */
  readonly createdBy: string;
  readonly expires: number;
  /** Null: it was not revoked. */
  readonly revoked: number | null;
  readonly revokedBy: string | null;
}

// A record without one of these gives no rights at all: a damaged limit must not read as "no limit".
const kind = ownRecord<Omit<Token, "name">>("token", {
  role: strict("role", oneOf(...apiRoles)),
  hash: strict("hash", word),
  labels: strict("labels", words),
  tenants: strict("tenants", words),
  created: optional("created", 0, number),
  createdBy: optional("created_by", "", word),
  expires: strict("expires", number),
  revoked: strict("revoked", numberOrNull),
  revokedBy: optional("revoked_by", null, text),
});

/** Where the token of this name is. */
export function tokenPath(name: string): string {
  return `${TOKENS}/${name}`;
}

/** `stored`: the record as it was read, of one that is changed. */
export function encodeToken(token: Token, stored?: Uint8Array): Uint8Array {
  const { name: _, ...fields } = token;
  return kind.encode(fields, stored);
}

/** @throws RecordError for a record that gives no rights, because this release cannot read all of it */
export function decodeToken(name: string, data: Uint8Array): Token {
  return { name, ...kind.decode(name, data) };
}
