import { cloudDriver, type Driver } from "@nodeyard/driver";
import { type IbmProviderConfig, ibmvpcConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { Ibm, type IbmOptions } from "./ibm.ts";
import type { Instance } from "./names.ts";
import { ibmCloud, type ProviderHost } from "./provider.ts";

/** What the driver uses of its host; tests provide their own. */
export interface IbmHost extends Pick<IbmOptions, "around">, ProviderHost {
  /** Opens the connections of one credential. */
  connect(): IbmOptions["wire"];
}

/** Makes the driver for a host. Providers with one credential and region share connections and the rate limit. */
export function createIbmDriver({ around, connect, ...host }: IbmHost): Driver<IbmProviderConfig> {
  const parts = { name: "ibmvpc", config: ibmvpcConfig, mapError };
  return cloudDriver<IbmProviderConfig, Ibm, Instance>(parts, (config, context, closed) => {
    const { clock, random, observe } = context;
    const { region, credentialsFile: file, rate } = config.own;
    return {
      key: JSON.stringify([region, file]),
      intervalMs: rate === 0 ? 0 : 1_000 / rate,
      account: () => new Ibm({ clock, random, wire: connect(), around, file, region, observe }),
      cloud: (ibm) => ibmCloud(config, context, { ...host, ibm, closed }),
    };
  });
}
