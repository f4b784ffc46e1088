import {
  type Cloud,
  type CloudPart,
  type DriverContext,
  type LabelConfig,
  ListWatch,
  messageOf,
  type OpenFile,
  tagOf,
} from "@nodeyard/driver";
import { defined } from "@nodeyard/runtime";
import { Addresses } from "./addresses.ts";
import type { IbmLabelOwn, IbmPoolOwn, IbmProviderConfig } from "./config.ts";
import type { Ibm } from "./ibm.ts";
import { imagesOf } from "./images.ts";
import { Lookups } from "./lookups.ts";
import { amountsOf, type Instance, machineWork, type Volume } from "./machines.ts";
import { Names } from "./names.ts";

/** Lists show a new machine after this at the latest, milliseconds. */
const LISTED_MS = 30_000;

/** A provider of a VPC. No I/O. */
export function ibmCloud(
  config: IbmProviderConfig,
  { clock, log, installation, purpose = "serve" }: DriverContext,
  { ibm, openFile, closed }: { readonly ibm: Ibm; readonly openFile: OpenFile; readonly closed: AbortSignal },
): Cloud<Instance> {
  const { own, pools, name: provider } = config;
  const names = new Names(installation, provider, own.systems.keys());
  const lookups = new Lookups(ibm, clock, config);
  const addresses = new Addresses({ ibm, clock, names, lookups, config });
  const watch = new ListWatch<Instance>({
    ...{ clock, what: "list of instances", settledMs: LISTED_MS, idOf: ({ id }) => id, isGone: () => false },
    list: (signal) => ibm.list<Instance>("instances", signal),
    onFailure: (error) =>
      log.warn({ provider, error: messageOf(error) }, "cannot list the instances; will retry"),
  });
  const images = imagesOf({ config, ibm, clock, names, lookups, openFile });
  return {
    ...machineWork({ config, ibm, clock, names, lookups, addresses, watch, closed }),
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
      types: { of: (label) => typeOf(label as LabelConfig<IbmLabelOwn>) },
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
      for (const one of [watch, lookups, addresses]) one.close();
    },
  };
}

/** Machines of one profile and market fail together. */
function typeOf({ own }: LabelConfig<IbmLabelOwn>): string {
  return own.spot ? `${own.profile}, spot` : own.profile;
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
