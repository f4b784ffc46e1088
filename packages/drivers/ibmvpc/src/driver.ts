import { type Driver, type OpenFile, SharedAccounts, type Wire } from "@nodeyard/driver";
import { type IbmProviderConfig, ibmvpcConfig } from "./config.ts";
import { Ibm } from "./ibm.ts";
import { ibmProvider } from "./provider.ts";
import type { Around } from "./sign-in.ts";

/** What the driver uses of its host; tests provide their own. */
export interface IbmHost {
  readonly around: Around;
  /** Opens the connections of one credential. */
  connect(): Pick<Wire, "send" | "close">;
  readonly openFile: OpenFile;
}

/** Makes the driver for a host. Providers with one credential and region share connections and the rate limit. */
export function createIbmDriver(host: IbmHost): Driver<IbmProviderConfig> {
  const sessions = new SharedAccounts<Ibm>();
  return {
    name: "ibmvpc",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config: ibmvpcConfig,
    open(config, context) {
      const { clock, random, observe } = context;
      const { region, credentialsFile, rate } = config.own;
      const share = () =>
        sessions.share(
          clock,
          JSON.stringify([region, credentialsFile]),
          rate === 0 ? 0 : 1_000 / rate,
          () => {
            const wire = host.connect();
            return new Ibm({ clock, random, wire, around: host.around, credentialsFile, region, observe });
          },
        );
      return ibmProvider(config, context, { share, openFile: host.openFile });
    },
  };
}
