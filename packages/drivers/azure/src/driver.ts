import {
  type Cloud,
  type CloudHost,
  cloudDriver,
  type Driver,
  type DriverContext,
  type LabelConfig,
  launchedLabels,
  type MachineTable,
  memoryEvidence,
  orThrow,
} from "@nodeyard/driver";
import { type AddressedVm, AzureAccount } from "./account.ts";
import { type AzureLabelOwn, type AzureOrder, type AzureProviderConfig, azureConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { identityOf } from "./identity.ts";
import { imageStore } from "./images.ts";
import { machineWork, subnetId } from "./machines.ts";
import { besideMachines } from "./parts.ts";
import { keyOf } from "./resources.ts";
import { amountsOf, usedBy } from "./sizes.ts";

/** Dependencies of the driver on its host. Tests pass their own. */
export interface AzureHost extends CloudHost {
  /** A password that nobody can guess. */
  password(): string;
}

/** The driver on a given host. Providers with the same credential, location and resource group share connections, lists and the rate. */
export function createAzureDriver(host: AzureHost): Driver<AzureProviderConfig> {
  const parts = { name: "azure", config: azureConfig, mapError };
  return cloudDriver<AzureProviderConfig, AzureAccount, AddressedVm>(parts, (config, context) => {
    const { authPath, location, resourceGroup: group, intervalMs } = config.own;
    const { around } = host;
    const identity = identityOf(authPath, around);
    const { secret, ...who } = identity;
    return {
      key: JSON.stringify([who, authPath, keyOf(location), keyOf(group)]),
      intervalMs,
      account: () =>
        new AzureAccount({ ...context, ...host.connect(), identity, location, group, authPath, around }),
      cloud: (account) => azureCloud(config, context, account, host),
    };
  });
}

/** A provider of the subscription. */
function azureCloud(
  config: AzureProviderConfig,
  { log, evidence = memoryEvidence() }: DriverContext,
  account: AzureAccount,
  { password, openFile }: AzureHost,
): Cloud<AddressedVm, undefined, MachineTable<AddressedVm>> {
  const { sizes, watch, root, limiter } = account;
  const power = (action: "deallocate" | "start") => (name: string, signal: AbortSignal) =>
    account.whole("POST", `${account.path("virtualMachines", name)}/${action}`, undefined, signal);
  return {
    ...machineWork({ config, account, log, evidence, password }),
    // Lists leave out whether a machine runs.
    suspends: { suspend: power("deallocate"), resume: power("start") },
    parts: besideMachines(account, evidence),
    partsOf: ({ properties }) => [
      properties.storageProfile?.osDisk?.managedDisk?.id.toLowerCase(),
      ...(properties.networkProfile?.networkInterfaces ?? []).map(({ id }) => id.toLowerCase()),
    ],
    amounts: async (vm, signal) => usedBy(vm, await sizes.all(signal), config.own.location),
    async quota(signal) {
      const known = await sizes.all(signal);
      const limits = await sizes.limits([...(await watch.all(signal, false)).values()], signal);
      const counted = config.pools.flatMap(launchedLabels).flatMap(({ own }) => {
        const size = known.get(keyOf(own.size));
        return size === undefined ? [] : Object.keys(amountsOf(size, own.spot));
      });
      // Others have nothing to do with the labels, and one of 0 must not stop the provider.
      return Object.fromEntries(Object.entries(limits).filter(([name]) => counted.includes(name)));
    },
    need: async ({ own }: LabelConfig<AzureLabelOwn>, signal) =>
      amountsOf(await sizes.of(own.size, signal), own.spot),
    ...{ limiter, images: imageStore(account, config, openFile) },
    /** The zones in which some size of a pool is sold; none where the location has none. */
    async zones(pool: AzureOrder["pool"], signal) {
      const known = await sizes.all(signal);
      const sold = launchedLabels(pool).flatMap(({ own }) => known.get(keyOf(own.size))?.zones ?? []);
      return [...new Set(sold)].sort();
    },
    place: () => ({ subscription: root, "resource group": config.own.resourceGroup.toLowerCase() }),
    async check(signal) {
      // It may be in another group, and in another subscription.
      const id = subnetId(account, config);
      const rest = [sizes.all(signal), watch.all(signal, false)];
      const [subnet] = await Promise.all([account.get(id, signal), ...rest]);
      orThrow(subnet, `there is no subnet ${id}; correct network or subnet-id`);
    },
  };
}
