import { neededText, type ReadFile } from "@nodeyard/driver";
import type { TlsOptions } from "@nodeyard/driver/http";
import type { Cloud } from "./clouds/index.ts";

/** Contents of the certificate files that clouds.yaml names. Throws CloudConfigError with the path of a file that cannot be read. */
export function tlsOf({ tls: { verify, cacert, cert, key } }: Cloud, read: ReadFile): TlsOptions {
  const text = (path: string | null) => (path === null ? null : neededText(path, read));
  return { verify, ca: text(cacert), cert: text(cert), key: text(key) };
}

/** Identifies the customer that has the quota and the rate limit. Secrets are left out: a changed secret is still the same customer. */
export function keyOf({ credential, tls }: Cloud): string {
  const { password, token, application_credential_secret, ...rest } = credential.values;
  const who = Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1));
  // The places of certificates are part of it, because connections are made with them.
  return JSON.stringify([credential.type, who, tls, token === undefined ? "" : "token"]);
}

/** Least time between two calls, milliseconds, by the provider and by `rate_limit` of clouds.yaml, which is calls per second. */
export function intervalOf({ rateLimit }: Cloud, own: number | null): number {
  return Math.max(own ?? 0, rateLimit === null ? 0 : 1_000 / rateLimit);
}
