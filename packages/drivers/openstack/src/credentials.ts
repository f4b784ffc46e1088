import {
  type Clock,
  CloudConfigError,
  Connections,
  isCertificateError,
  neededText,
  type Random,
  type ReadFile,
  RenewedValue,
  type Wire,
} from "@nodeyard/driver";
import type { TlsOptions } from "@nodeyard/driver/http";
import { Session } from "./client/index.ts";
import type { Cloud } from "./clouds/index.ts";

/** How a session sends its requests. */
export type Sender = Pick<Wire, "send" | "close">;

/** What the session of a credential is opened with. Of providers that share one, the first one's are used. */
export interface SessionOrder {
  readonly clock: Clock;
  readonly random: Random;
  /** Reads the cloud's entry again; called for each login. */
  readonly reread: () => Cloud;
  /** Reads its certificate files again; called each minute, and when a certificate could not be verified. */
  readonly tls: () => TlsOptions;
  /** Opens the connections, anew when the contents of these files have changed. */
  readonly connect: (tls: TlsOptions) => Sender;
}

/** Time limit of reading certificate files, milliseconds. */
const LOAD_MS = 60_000;

/** Reads no file and connects to nothing. */
export function openSession({ clock, random, reread, tls, connect }: SessionOrder): Session {
  const connections = new Connections(connect);
  const certificates = new RenewedValue({
    clock,
    load: async () => tls(),
    endOf: () => null,
    loadMs: LOAD_MS,
    late: () => new CloudConfigError("the certificates were not read in time"),
  });
  return new Session({
    ...{ clock, random, credential: () => reread().credential },
    async send(request) {
      try {
        return await connections.of(await certificates.get()).send(request);
      } catch (error) {
        if (isCertificateError(error)) certificates.refused();
        throw error;
      }
    },
    async close() {
      certificates.close(new CloudConfigError("the certificates are not used any more"));
      await connections.close();
    },
  });
}

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
