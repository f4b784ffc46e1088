import {
  type Cloud,
  cloudProvider,
  type DriverContext,
  type LabelConfig,
  ListWatch,
  messageOf,
  type OpenFile,
  type Provider,
  type Resources,
  type Share,
} from "@nodeyard/driver";
import { Addresses } from "./addresses.ts";
import type { IbmLabelOwn, IbmPoolOwn, IbmProviderConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import type { Ibm } from "./ibm.ts";
import { imagesOf } from "./images.ts";
import { Lookups } from "./lookups.ts";
import { amountsOf, hasEnded, type Instance, machineWork } from "./machines.ts";
import { Names } from "./names.ts";
import { volumesOf } from "./volumes.ts";

/** Opens a provider of a VPC. */
export function ibmProvider(
  config: IbmProviderConfig,
  context: DriverContext,
  { share, openFile }: { readonly share: () => Share<Ibm>; readonly openFile: OpenFile },
): Promise<Provider> {
  return cloudProvider<Instance>(config, mapError, (closed): Cloud<Instance> => {
    const { account: ibm, release } = share();
    const { clock, log, installation, purpose = "serve" } = context;
    const { own, pools, name: provider } = config;
    const names = new Names(installation, provider, own.systems.keys());
    const lookups = new Lookups(ibm, clock, config);
    const addresses = new Addresses({ ibm, clock, names, lookups, config });
    const watch = new ListWatch<Instance>({
      clock,
      what: "list of instances",
      list: (signal) => ibm.list<Instance>("/instances", signal),
      idOf: ({ id }) => id,
      isGone: () => false,
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
      isEnding: hasEnded,
      // IBM tells no quota, so that the file does.
      quota: async () => own.quota satisfies Resources,
      need: async ({ own: label }: LabelConfig<IbmLabelOwn>, signal) => ({
        instances: 1,
        ...(await lookups.sizeOf(label, signal)),
      }),
      offers: {
        types: { of: (label) => typeOf(label as LabelConfig<IbmLabelOwn>) },
        pace: { now: () => ibm.limiter },
        zones: {
          list: async (pool, signal) =>
            [...(await lookups.network(pool.own as IbmPoolOwn, signal)).byZone.keys()].sort(),
        },
        ...(images.store && { images: images.store }),
      },
      /** Credential, VPC and subnets; to serve, also the resource groups. */
      async check(signal) {
        await Promise.all(pools.map((pool) => lookups.network(pool.own, signal)));
        if (purpose === "serve")
          await Promise.all(pools.map((pool) => lookups.group(names.group(pool.name), true, signal)));
      },
      async close() {
        for (const one of [watch, lookups, addresses]) one.close();
        await release();
      },
    };
  });
}

/** Machines of one profile and market fail together. */
function typeOf({ own }: LabelConfig<IbmLabelOwn>): string {
  return own.spot ? `${own.profile}, spot` : own.profile;
}
