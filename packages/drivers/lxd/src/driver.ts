import { X509Certificate } from "node:crypto";
import { CloudConfigError, type Driver, messageOf, renewedWire } from "@nodeyard/driver";
import type { TlsOptions } from "@nodeyard/driver/http";
import { type LxdProviderConfig, type LxdProviderOwn, lxdConfig } from "./config.ts";
import type { OpenBlob } from "./images.ts";
import type { LxdWire } from "./operations.ts";
import { openLxd } from "./provider.ts";

/** What the driver uses of its host; tests provide their own. */
export interface LxdHost {
  /** Text of a file. */
  read(path: string): string;
  /** Opens the connections to a server, anew when the contents of its certificate files have changed. */
  connect(tls: TlsOptions): LxdWire;
  readonly blob: OpenBlob;
}

/** Makes the driver for a host. `local`: its machines may run on the launcher's own host. */
export function createLxdDriver({ read, connect, blob }: LxdHost): Driver<LxdProviderConfig> {
  const pem = (path: string) => reading(path, () => read(path));
  return {
    name: "lxd",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true, local: true },
    config: lxdConfig,
    open(config, context) {
      const { clock } = context;
      let latest: LxdWire | undefined;
      // Events come by the connections that calls have opened.
      const open = (tls: TlsOptions) => (latest = connect(tls));
      const wire = renewedWire({ clock, read: () => tlsOf(config.own, pem), connect: open });
      const listen: LxdWire["listen"] = (url, listener) => latest!.listen(url, listener);
      return openLxd(config, context, { ...{ pem, blob, listen }, ...wire });
    },
  };
}

function tlsOf(own: LxdProviderOwn, pem: (path: string) => string): TlsOptions {
  const text = (path: string | null) => (path === null ? null : pem(path));
  const ca = text(own.serverCertificate);
  // The names in a server's own certificate are those of its host when it was made; what counts is that it is this one.
  const names =
    ca === null ? "" : reading("server-certificate", () => new X509Certificate(ca).subjectAltName);
  return {
    ...{ verify: true, ca, cert: text(own.clientCertificate), key: text(own.clientKey) },
    serverName: /DNS:([^,\s]+)/.exec(names ?? "")?.[1] ?? null,
    socketPath: own.server.startsWith("/") ? own.server : null,
  };
}

function reading<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new CloudConfigError(`${what} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}
