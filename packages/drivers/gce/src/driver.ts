import { cloudDriver, type Driver, type OpenFile, type Wire } from "@nodeyard/driver";
import { Google, type Token } from "./client/google.ts";
import { type GceProviderConfig, gceConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import type { Instance } from "./machines/instances.ts";
import { gceCloud } from "./provider.ts";

/** What the driver uses of its host; tests provide their own. */
export interface GceHost {
  /** Opens the connections of one credential. */
  connect(): Pick<Wire, "send" | "close">;
  /** A token by the credentials file, or by application default credentials. Reads them anew. */
  logIn(file: string | null): Promise<Token>;
  readonly openFile: OpenFile;
}

/** Makes the driver for a host. Providers with one credential and project share connections and the rate limit. */
export function createGceDriver(host: GceHost): Driver<GceProviderConfig> {
  const parts = { name: "gce", config: gceConfig, mapError };
  return cloudDriver<GceProviderConfig, Google, Instance, string>(parts, (config, context, closed) => {
    const { clock, random, observe } = context;
    const { project, credentialsFile, apiEndpoint: endpoint, rate } = config.own;
    const logIn = () => host.logIn(credentialsFile);
    return {
      key: JSON.stringify([project, credentialsFile, endpoint]),
      intervalMs: rate === 0 ? 0 : 1_000 / rate,
      account: () => new Google({ clock, random, wire: host.connect(), logIn, project, endpoint, observe }),
      cloud: (google) => gceCloud(config, context, { google, openFile: host.openFile, closed }),
    };
  });
}
