import { type Around, cloudDriver, type Driver, type Wire } from "@nodeyard/driver";
import { type AddressedVm, AzureAccount } from "./account.ts";
import { type AzureProviderConfig, azureConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { identityOf } from "./identity.ts";
import { azureCloud, type ProviderHost } from "./provider.ts";

/** Dependencies of the driver on its host. Tests pass their own. */
export interface AzureHost extends ProviderHost {
  readonly around: Around;
  /** Opens the connections of one credential. */
  connect(): Wire;
}

/** The driver on a given host. Providers with the same credential, location and resource group share connections, lists and the rate. */
export function createAzureDriver(host: AzureHost): Driver<AzureProviderConfig> {
  const parts = { name: "azure", config: azureConfig, mapError };
  return cloudDriver<AzureProviderConfig, AzureAccount, AddressedVm>(parts, (config, context, closed) => {
    const { clock, random, log, observe } = context;
    const { authPath, location, resourceGroup: group, rate } = config.own;
    const { around } = host;
    const identity = identityOf(authPath, around);
    const { secret, ...who } = identity;
    return {
      key: JSON.stringify([who, authPath, location.toLowerCase(), group.toLowerCase()]),
      intervalMs: rate === 0 ? 0 : 1_000 / rate,
      account: () => {
        const own = { identity, location, group, authPath, around, wire: host.connect() };
        return new AzureAccount({ clock, random, log, observe, ...own });
      },
      cloud: (account) => azureCloud(config, context, { account, host, closed }),
    };
  });
}
