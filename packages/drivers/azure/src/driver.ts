import {
  type Cloud,
  type CloudHost,
  cloudDriver,
  type Driver,
  type DriverContext,
  type LabelConfig,
  type MachineTable,
  marketType,
  memoryEvidence,
} from "@nodeyard/driver";
import { type AddressedVm, AzureAccount } from "./account.ts";
import { type AzureLabelOwn, type AzureProviderConfig, azureConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { identityOf } from "./identity.ts";
import { imageStore } from "./images.ts";
import { machineWork, subnetId } from "./machines.ts";
import { besideMachines } from "./parts.ts";
import { keyOf } from "./resources.ts";
import { amountsOf, type Size, usedBy } from "./sizes.ts";

/** Dependencies of the driver on its host. Tests pass their own. */
export interface AzureHost extends CloudHost {
  /** A password that nobody can guess. */
  password(): string;
}

/** The driver on a given host. Providers with the same credential, location and resource group share connections, lists and the rate. */
export function createAzureDriver(host: AzureHost): Driver<AzureProviderConfig> {
  const parts = { name: "azure", config: azureConfig, mapError };
  return cloudDriver<AzureProviderConfig, AzureAccount, AddressedVm>(parts, (config, context) => {
    const { authPath, location, resourceGroup: group, rate } = config.own;
    const { around } = host;
    const identity = identityOf(authPath, around);
    const { secret, ...who } = identity;
    return {
      key: JSON.stringify([who, authPath, keyOf(location), keyOf(group)]),
      intervalMs: rate === 0 ? 0 : 1_000 / rate,
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
  return {
    ...machineWork({ config, account, log, evidence, password }),
    parts: besideMachines(account, evidence),
    partsOf: ({ properties }) => [
      properties.storageProfile?.osDisk?.managedDisk?.id.toLowerCase(),
      ...(properties.networkProfile?.networkInterfaces ?? []).map(({ id }) => id.toLowerCase()),
    ],
    async amounts(_, signal) {
      const known = await sizes.all(signal);
      return (vm) => usedBy(vm, known, config.own.location);
    },
    async quota(signal) {
      const known = await sizes.all(signal);
      const limits = await sizes.limits([...(await watch.all(signal, false)).values()], signal);
      const counted = namesOf(config, known);
      // Others have nothing to do with the labels, and one of 0 must not stop the provider.
      return Object.fromEntries(Object.entries(limits).filter(([name]) => counted.has(name)));
    },
    need: async ({ own }: LabelConfig<AzureLabelOwn>, signal) =>
      amountsOf(await sizes.of(own.size, signal), own.spot),
    ...{ limiter, images: imageStore(account, config, openFile) },
    typeOf: ({ own }: LabelConfig<AzureLabelOwn>) => marketType(own.size, own.spot),
    zones: async (pool: AzurePool, signal) => zonesOf(pool, await sizes.all(signal)),
    place: () => ({ subscription: root, "resource group": config.own.resourceGroup.toLowerCase() }),
    async check(signal) {
      const subnet = account.assertSubnet(subnetId(account, config), signal);
      await Promise.all([subnet, sizes.all(signal), watch.all(signal, false)]);
    },
  };
}

type AzurePool = AzureProviderConfig["pools"][number];

/** The zones in which some size of a pool is sold; none where the location has none. */
function zonesOf({ labels }: AzurePool, sizes: ReadonlyMap<string, Size>): readonly string[] {
  const zones = [...labels.values()].flatMap(({ own }) => sizes.get(keyOf(own.size))?.zones ?? []);
  return [...new Set(zones)].sort();
}

/** Names of the amounts that the labels use. */
function namesOf({ pools }: AzureProviderConfig, sizes: ReadonlyMap<string, Size>): ReadonlySet<string> {
  const labels = pools.flatMap((pool) => [...pool.labels.values()]);
  return new Set(
    labels.flatMap(({ own }) => {
      const size = sizes.get(keyOf(own.size));
      return size === undefined ? [] : Object.keys(amountsOf(size, own.spot));
    }),
  );
}
