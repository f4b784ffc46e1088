import {
  type Cloud,
  type CloudPart,
  type DriverContext,
  type LabelConfig,
  marketType,
  type OpenFile,
  tagOf,
} from "@nodeyard/driver";
import { defined } from "@nodeyard/runtime";
import { Addresses } from "./addresses.ts";
import type { IbmLabelOwn, IbmPoolOwn, IbmProviderConfig } from "./config.ts";
import type { Ibm } from "./ibm.ts";
import { imagesOf } from "./images.ts";
import { Lookups } from "./lookups.ts";
import { amountsOf, machineWork } from "./machines.ts";
import { type Instance, Names, type Volume } from "./names.ts";

/** What a provider has of its host. */
export interface ProviderHost {
  readonly openFile: OpenFile;
}

/** A provider of a VPC. No I/O. */
export function ibmCloud(
  config: IbmProviderConfig,
  { clock, log, installation, purpose = "serve" }: DriverContext,
  { ibm, openFile, closed }: ProviderHost & { readonly ibm: Ibm; readonly closed: AbortSignal },
): Cloud<Instance> {
  const { own, pools, name } = config;
  const names = new Names(installation, name, own.systems.keys());
  const lookups = new Lookups({ ibm, clock, config });
  const site = { config, ibm, clock, names, lookups };
  const addresses = new Addresses(site);
  const images = imagesOf({ ...site, openFile });
  return {
    ...machineWork({ ...site, addresses, log, closed }),
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
    offers: {
      ...defined({ images: images.store }),
      types: { of: ({ own: label }: LabelConfig<IbmLabelOwn>) => marketType(label.profile, label.spot) },
      pace: { now: () => ibm.limiter },
      zones: {
        list: async (pool, signal) =>
          [...(await lookups.network(pool.own as IbmPoolOwn, signal)).byZone.keys()].sort(),
      },
    },
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
