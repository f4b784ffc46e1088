import {
  type Cloud,
  type CloudHost,
  type CloudPart,
  cloudDriver,
  type Driver,
  type DriverContext,
  defined,
  type LabelConfig,
  type MachineTable,
  marketType,
  type OpenFile,
  tagOf,
} from "@nodeyard/driver";
import { Addresses } from "./addresses.ts";
import { type IbmLabelOwn, type IbmProviderConfig, ibmvpcConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { Ibm } from "./ibm.ts";
import { imagesOf } from "./images.ts";
import { lookupsOf } from "./lookups.ts";
import { amountsOf, machineWork } from "./machines.ts";
import { type Instance, Names, type Volume } from "./names.ts";

/** Makes the driver for a host. Providers with one credential and region share connections and the rate limit. */
export function createIbmDriver({ around, connect, openFile }: CloudHost): Driver<IbmProviderConfig> {
  const parts = { name: "ibmvpc", config: ibmvpcConfig, mapError };
  return cloudDriver<IbmProviderConfig, Ibm, Instance>(parts, (config, context) => {
    const { region, credentialsFile: file, rate } = config.own;
    return {
      key: JSON.stringify([region, file]),
      intervalMs: rate === 0 ? 0 : 1_000 / rate,
      account: () => new Ibm({ ...context, ...connect(), around, file, region }),
      cloud: (ibm) => ibmCloud(config, context, ibm, openFile),
    };
  });
}

/** A provider of a VPC. */
function ibmCloud(
  config: IbmProviderConfig,
  { clock, installation, purpose = "serve" }: DriverContext,
  ibm: Ibm,
  openFile: OpenFile,
): Cloud<Instance, undefined, MachineTable<Instance>> {
  const { own, pools, name } = config;
  const names = new Names(installation, name, own.systems.keys());
  const lookups = lookupsOf({ ibm, clock, config });
  const site = { config, ibm, clock, names, lookups };
  const addresses = new Addresses(site);
  const images = imagesOf(site, openFile);
  return {
    ...machineWork(site, addresses),
    ...{ limiter: ibm.limiter, ...defined({ images: images.store }) },
    place: () => ({ ...(ibm.account && { account: ibm.account }), region: own.region }),
    parts: { floatingip: addresses.part, volume: volumesOf(ibm, names), ...images.parts },
    partsOf: ({ boot_volume_attachment: boot }) => [boot?.volume?.id],
    amounts: async () => amountsOf,
    // IBM tells no quota, so that the file does.
    quota: async () => own.quota,
    need: async ({ own: label }: LabelConfig<IbmLabelOwn>, signal) => ({
      instances: 1,
      ...(await lookups.sizeOf(label, signal)),
    }),
    typeOf: ({ own: label }: LabelConfig<IbmLabelOwn>) => marketType(label.profile, label.spot),
    zones: async (pool, signal) => [...(await lookups.network(pool.own, signal)).byZone.keys()].sort(),
    /** Credential, VPC and subnets; to serve, also the resource groups. */
    async check(signal) {
      await Promise.all(pools.map((pool) => lookups.network(pool.own, signal)));
      if (purpose === "serve")
        await Promise.all(pools.map((pool) => lookups.group(names.group(pool.name), signal)));
    },
    close() {
      lookups.close();
      addresses.close();
    },
  };
}

/** Boot volumes, which go with their machine unless somebody changed that. */
function volumesOf(ibm: Ibm, names: Names): CloudPart {
  return {
    list: async (signal) =>
      (await ibm.list<Volume>("volumes", signal)).map((volume) => {
        const on = (volume.volume_attachments ?? []).map(({ instance }) => instance?.id);
        return { id: volume.id, on, tag: on.length === 0 ? tagOf(names.metadataOf(volume)) : null };
      }),
    delete: (id, signal) => ibm.delete("volume", `/volumes/${encodeURIComponent(id)}`, signal),
  };
}
