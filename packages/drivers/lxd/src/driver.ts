import { X509Certificate } from "node:crypto";
import { type Driver, messageOf, type OpenFile, type Wire } from "@nodeyard/driver";
import { LxdConfigError, type Route } from "./client.ts";
import { type LxdProviderConfig, type LxdProviderOwn, lxdConfig } from "./config.ts";
import { openLxd } from "./provider.ts";

/** What the driver uses of its host; tests provide their own. */
export interface LxdHost {
  /** Text of a file; undefined: there is none. */
  read(path: string): string | undefined;
  /** Opens the connections to a server, anew when the contents of its certificate files have changed. */
  connect(route: Route): Pick<Wire, "send" | "close">;
  readonly openFile: OpenFile;
}

/** Makes the driver for a host. `local`: its machines may run on the launcher's own host. */
export function createLxdDriver(host: LxdHost): Driver<LxdProviderConfig> {
  const pem = (path: string): string => {
    let text: string | undefined;
    try {
      text = host.read(path);
    } catch (error) {
      throw new LxdConfigError(`${path} cannot be read: ${messageOf(error)}`, { cause: error });
    }
    if (text === undefined) throw new LxdConfigError(`there is no file ${path}`);
    return text;
  };
  return {
    name: "lxd",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true, local: true },
    config: lxdConfig,
    open: (config, context) => {
      const { connect, openFile } = host;
      return openLxd(config, context, { connect, openFile, pem, route: () => routeOf(config.own, pem) });
    },
  };
}

function routeOf(own: LxdProviderOwn, pem: (path: string) => string): Route {
  const read = (path: string | null) => (path === null ? null : pem(path));
  const ca = read(own.serverCertificate);
  return {
    ca,
    cert: read(own.clientCertificate),
    key: read(own.clientKey),
    // A server's own certificate has the names that its host had when it was made; what counts is that it is this one.
    serverName: ca === null ? null : nameIn(ca, own),
    socketPath: own.server.startsWith("/") ? own.server : null,
  };
}

/** The first host name in a certificate. */
function nameIn(pem: string, { serverCertificate }: LxdProviderOwn): string | null {
  try {
    return /DNS:([^,\s]+)/.exec(new X509Certificate(pem).subjectAltName ?? "")?.[1] ?? null;
  } catch (error) {
    throw new LxdConfigError(`${serverCertificate} has no certificate: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
