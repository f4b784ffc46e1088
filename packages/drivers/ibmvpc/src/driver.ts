import { cloudDriver, type Driver, type OpenFile, type Wire } from "@nodeyard/driver";
import { type IbmProviderConfig, ibmvpcConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { Ibm } from "./ibm.ts";
import type { Instance } from "./machines.ts";
import { ibmCloud } from "./provider.ts";
import type { Around } from "./sign-in.ts";

/** What the driver uses of its host; tests provide their own. */
export interface IbmHost {
  readonly around: Around;
  /** Opens the connections of one credential. */
  connect(): Pick<Wire, "send" | "close">;
  readonly openFile: OpenFile;
}

/** Makes the driver for a host. Providers with one credential and region share connections and the rate limit. */
export function createIbmDriver({ around, connect, openFile }: IbmHost): Driver<IbmProviderConfig> {
  const parts = { name: "ibmvpc", config: ibmvpcConfig, mapError };
  return cloudDriver<IbmProviderConfig, Ibm, Instance>(parts, (config, context, closed) => {
    const { clock, random, observe } = context;
    const { region, credentialsFile: file, rate } = config.own;
    return {
      key: JSON.stringify([region, file]),
      intervalMs: rate === 0 ? 0 : 1_000 / rate,
      account: () => new Ibm({ clock, random, wire: connect(), around, file, region, observe }),
      cloud: (ibm) => ibmCloud(config, context, { ibm, openFile, closed }),
    };
  });
}
