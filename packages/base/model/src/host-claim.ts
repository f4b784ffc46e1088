import { strict, word } from "./fields.ts";
import { ownRecord } from "./own-record.ts";

/** Folder of the claims: which provider has the nodes of a host that exists without the pool. */
export const HOST_CLAIMS = "/nodeyard/hosts";

/** Path of the claim of a login, which is all that a user of a node gets: `user@host:port`. */
export function hostClaimPath(login: string): string {
  return `${HOST_CLAIMS}/${encodeURIComponent(login)}`;
}

const record = ownRecord<{ readonly provider: string }>(
  "the claim of host",
  { provider: strict("provider", word) },
  (login) => `; nobody gets the host until ${hostClaimPath(login)} is deleted`,
);

/** The data of a claim. */
export function encodeHostClaim(provider: string): Uint8Array {
  return record.encode({ provider });
}

/** @throws RecordError for data that is no claim. Returns the provider that has the host. */
export function decodeHostClaim(login: string, data: Uint8Array): string {
  return record.decode(login, data).provider;
}
