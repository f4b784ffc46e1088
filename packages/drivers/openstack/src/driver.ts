import { type Clock, CloudConfigError, type Driver, type OpenFile, type Random } from "@nodeyard/driver";
import type { TlsOptions } from "@nodeyard/driver/http";
import { messageOf } from "@nodeyard/runtime";
import { type Cloud, type CloudConfigPaths, resolveCloud } from "./clouds/index.ts";
import type { OpenstackProviderConfig } from "./config.ts";
import { openstackConfig } from "./config.ts";
import { Credentials, type Sender } from "./credentials.ts";
import { openstackProvider } from "./provider.ts";

/** What the driver uses of its host; tests provide their own. */
export interface OpenstackHost {
  /** Where clouds.yaml, certificates and OS_* variables are read. */
  readonly around: CloudConfigPaths;
  /** Opens the connections of one credential, anew when the contents of its certificate files have changed. */
  connect(tls: TlsOptions): Sender;
  readonly openFile: OpenFile;
  /** Whether this host has a routable IPv6 address. */
  hasIpv6(): boolean;
}

/** Makes the driver for a host. Providers with the same credentials share one session with the cloud. */
export function createOpenstackDriver(host: OpenstackHost): Driver<OpenstackProviderConfig> {
  const credentials = new Credentials((tls) => host.connect(tls));
  return {
    name: "openstack",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config: openstackConfig,
    open: (config, context) =>
      openstackProvider(config, context, {
        lease: () => leaseFor(host, credentials, config, context),
        ipv6: host.hasIpv6(),
        openFile: host.openFile,
      }),
  };
}

/** The provider's share of its credential. Throws CloudConfigError when clouds.yaml does not describe the cloud. */
function leaseFor(
  host: OpenstackHost,
  credentials: Credentials,
  { own: { cloud: name, region, intervalMs } }: OpenstackProviderConfig,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
) {
  // Read again for each login: a rotated password or application credential is then used without a restart.
  const reread = () => resolveCloud({ cloud: name, region }, host.around);
  const cloud = reread();
  const tls = () => tlsOf(reread(), host.around);
  // Now, so that a file that is not there is the error of the opening.
  tls();
  return credentials.lease({ clock, random, cloud, reread, tls, intervalMs });
}

/** Contents of the certificate files that clouds.yaml names. Throws CloudConfigError with the path of a file that cannot be read. */
function tlsOf(cloud: Cloud, around: CloudConfigPaths): TlsOptions {
  const { verify, cacert, cert, key } = cloud.tls;
  const read = (path: string | null) => (path === null ? null : readPem(path, cloud, around));
  return { verify, ca: read(cacert), cert: read(cert), key: read(key) };
}

function readPem(path: string, cloud: Cloud, around: CloudConfigPaths): string {
  let text: string | undefined;
  try {
    text = around.read(path);
  } catch (error) {
    throw new CloudConfigError(`cloud ${cloud.name}: ${path} cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
  if (text === undefined)
    throw new CloudConfigError(`cloud ${cloud.name}: there is no file ${path}; correct cacert, cert or key`);
  return text;
}
