import { type BearerToken, type CloudHost, cloudDriver, type Driver } from "@nodeyard/driver";
import { Google } from "./client/google.ts";
import { type GceProviderConfig, gceConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import type { Instance } from "./machines/instances.ts";
import { gceCloud } from "./provider.ts";

/** What the driver uses of its host; tests provide their own. */
export interface GceHost extends Pick<CloudHost, "connect" | "openFile"> {
  /** A token by the credentials file, or by application default credentials. Reads them anew. */
  logIn(file: string | null): Promise<BearerToken>;
}

/** Makes the driver for a host. Providers with one credential and project share connections and the rate limit. */
export function createGceDriver(host: GceHost): Driver<GceProviderConfig> {
  const parts = { name: "gce", config: gceConfig, mapError };
  return cloudDriver<GceProviderConfig, Google, Instance, string>(parts, (config, context) => {
    const { project, credentialsFile, apiEndpoint: endpoint, rate } = config.own;
    const logIn = () => host.logIn(credentialsFile);
    return {
      key: JSON.stringify([project, credentialsFile, endpoint]),
      intervalMs: rate === 0 ? 0 : 1_000 / rate,
      account: () => new Google({ ...context, ...host.connect(), logIn, project, endpoint }),
      cloud: (google) => gceCloud(config, context, google, host.openFile),
    };
  });
}
