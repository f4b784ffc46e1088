import { cloudDriver, type Driver, type OpenFile, renewedWire, type Wire } from "@nodeyard/driver";
import type { TlsOptions } from "@nodeyard/driver/http";
import type { Server } from "./api/index.ts";
import { Session } from "./client/index.ts";
import { type CloudConfigPaths, resolveCloud } from "./clouds/index.ts";
import { type OpenstackProviderConfig, openstackConfig } from "./config.ts";
import { intervalOf, keyOf, tlsOf } from "./credentials.ts";
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
