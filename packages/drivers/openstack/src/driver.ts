import {
  cloudDriver,
  type Driver,
  neededText,
  type OpenFile,
  type ReadFile,
  renewedWire,
  type Wire,
} from "@nodeyard/driver";
import type { TlsOptions } from "@nodeyard/driver/http";
import type { Server } from "./api/index.ts";
import { Session } from "./client/index.ts";
import { type Cloud, type CloudConfigPaths, resolveCloud } from "./clouds/index.ts";
import { type OpenstackProviderConfig, openstackConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { openstackCloud } from "./provider.ts";

/** What the driver uses of its host; tests provide their own. */
export interface OpenstackHost {
  /** Where clouds.yaml, certificates and OS_* variables are read. */
  readonly around: CloudConfigPaths;
  /** Opens the connections of one credential, anew when the contents of its certificate files have changed. */
  connect(tls: TlsOptions): Pick<Wire, "send" | "close">;
  readonly openFile: OpenFile;
  /** Whether this host has a routable IPv6 address. */
  hasIpv6(): boolean;
}

/** Makes the driver for a host. Providers with the same credentials share one session with the cloud. */
export function createOpenstackDriver(host: OpenstackHost): Driver<OpenstackProviderConfig> {
  const parts = { name: "openstack", config: openstackConfig, mapError };
  return cloudDriver<OpenstackProviderConfig, Session, Server>(parts, (config, context, closed) => {
    const { clock, random } = context;
    const { around, openFile } = host;
    // Read again for each login: a rotated password or application credential is then used without a restart.
    const reread = () => resolveCloud({ cloud: config.own.cloud, region: config.own.region }, around);
    const tls = () => tlsOf(reread(), around.read);
    const cloud = reread();
    // Now, so that a file that is not there is the error of the opening.
    tls();
    return {
      key: keyOf(cloud),
      intervalMs: intervalOf(cloud, config.own.intervalMs),
      account: () => {
        const wire = renewedWire({ clock, read: tls, connect: (by) => host.connect(by) });
        return new Session({ ...{ clock, random, ...wire }, credential: () => reread().credential });
      },
      cloud: (session) =>
        openstackCloud(config, context, { session, cloud, openFile, ipv6: host.hasIpv6(), closed }),
    };
  });
}

/** Contents of the certificate files that clouds.yaml names. Throws CloudConfigError with the path of a file that cannot be read. */
function tlsOf({ tls: { verify, cacert, cert, key } }: Cloud, read: ReadFile): TlsOptions {
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
