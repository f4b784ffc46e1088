import { type Driver, type OpenFile, SharedAccounts, type Wire } from "@nodeyard/driver";
import { type Customer, Google, type Token } from "./client/google.ts";
import { type GceProviderConfig, gceConfig } from "./config.ts";
import { gceProvider } from "./provider.ts";

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
  const customers = new SharedAccounts<Customer>();
  return {
    name: "gce",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config: gceConfig,
    open(config, context) {
      const { clock, random, observe } = context;
      const { project, credentialsFile, apiEndpoint: endpoint, rate } = config.own;
      const key = JSON.stringify([project, credentialsFile, endpoint]);
      const share = () =>
        customers.share(clock, key, rate === 0 ? 0 : 1_000 / rate, () => {
          const logIn = () => host.logIn(credentialsFile);
          const wire = host.connect();
          const google = new Google({ clock, random, wire, logIn, project, endpoint, observe });
          return {
            google,
            limit: (intervalMs) => google.limiter.configure(intervalMs),
            close: () => google.close(new Error(`project ${project} is not used any more`)),
          };
        });
      return gceProvider(config, context, { share, openFile: host.openFile });
    },
  };
}
