import {
  type Cloud,
  type DriverContext,
  type LabelConfig,
  marketType,
  memoryEvidence,
  type OpenFile,
  type PoolConfig,
} from "@nodeyard/driver";
import type { AddressedVm, AzureAccount } from "./account.ts";
import type { AzureLabelOwn, AzureProviderConfig } from "./config.ts";
import { imageStore } from "./images.ts";
import { machineWork, subnetId } from "./machines.ts";
import { besideMachines } from "./parts.ts";
import { amountsOf, type Size, usedBy } from "./sizes.ts";

/** What a provider has of its host. */
export interface ProviderHost {
  /** A password that nobody can guess. */
  password(): string;
  readonly openFile: OpenFile;
}

/** What a provider has besides its configuration. */
export interface Handles {
  readonly account: AzureAccount;
  readonly host: ProviderHost;
  /** Ends calls that go on without their callers. */
  readonly closed: AbortSignal;
}

/** A provider of the subscription. No I/O. */
export function azureCloud(
  config: AzureProviderConfig,
  { clock, log, evidence = memoryEvidence() }: DriverContext,
  { account, host, closed }: Handles,
): Cloud<AddressedVm> {
  const { sizes, watch, arm, root } = account;
  return {
    ...machineWork({ config, account, clock, log, evidence, closed, password: () => host.password() }),
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
    offers: {
      images: imageStore(account, config, host.openFile),
      types: { of: ({ own }: LabelConfig<AzureLabelOwn>) => marketType(own.size, own.spot) },
      pace: { now: () => arm.limiter },
      zones: { list: async (pool, signal) => zonesOf(pool, await sizes.all(signal)) },
    },
    place: () => ({ subscription: root, "resource group": config.own.resourceGroup.toLowerCase() }),
    async check(signal) {
      const subnet = account.assertSubnet(subnetId(account, config), signal);
      await Promise.all([subnet, sizes.all(signal), watch.all(signal, false)]);
    },
  };
}

/** The zones in which some size of a pool is sold; none where the location has none. */
function zonesOf({ labels }: PoolConfig, sizes: ReadonlyMap<string, Size>): readonly string[] {
  const own = [...labels.values()].map((label) => (label as LabelConfig<AzureLabelOwn>).own);
  return [...new Set(own.flatMap(({ size }) => sizes.get(size.toLowerCase())?.zones ?? []))].sort();
}

/** Names of the amounts that the labels use. */
function namesOf({ pools }: AzureProviderConfig, sizes: ReadonlyMap<string, Size>): ReadonlySet<string> {
  const labels = pools.flatMap((pool) => [...pool.labels.values()]);
  return new Set(
    labels.flatMap(({ own }) => {
      const size = sizes.get(own.size.toLowerCase());
      return size === undefined ? [] : Object.keys(amountsOf(size, own.spot));
    }),
  );
}
