import { cloudProvider, type Driver, SharedAccounts, type Wire } from "@nodeyard/driver";
import { AzureAccount } from "./account.ts";
import { type AzureProviderConfig, azureConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { type Around, identityOf } from "./identity.ts";
import { azureCloud, type ProviderHost } from "./provider.ts";

/** Dependencies of the driver on its host. Tests pass their own. */
export interface AzureHost extends ProviderHost {
  readonly around: Around;
  /** Opens the connections of one credential. */
  connect(): Wire;
}

/** The driver on a given host. Providers with the same credential, location and resource group share connections, lists and the rate. */
export function createAzureDriver(host: AzureHost): Driver<AzureProviderConfig> {
  const accounts = new SharedAccounts<AzureAccount>();
  return {
    name: "azure",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config: azureConfig,
    open: (config, context) =>
      cloudProvider(config, mapError, (closed) => {
        const { clock, random, log, observe } = context;
        const { authPath, location, resourceGroup: group, rate } = config.own;
        const identity = identityOf(authPath, host.around);
        const { secret, ...who } = identity;
        const share = accounts.share(
          clock,
          JSON.stringify([who, authPath, location.toLowerCase(), group.toLowerCase()]),
          rate === 0 ? 0 : 1_000 / rate,
          () =>
            new AzureAccount({
              ...{ clock, random, log, observe, identity, location, group, authPath },
              ...{ wire: host.connect(), around: host.around },
            }),
        );
        return azureCloud(config, context, { share, host, closed });
      }),
  };
}
