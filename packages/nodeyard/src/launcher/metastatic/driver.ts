import { type Driver, DriverError } from "@nodeyard/driver";
import type { MetastaticProvider } from "./config.ts";
import { metastaticConfig } from "./config.ts";

export const METASTATIC = "metastatic";

/**
 * What the configuration and the registry see. It has no cloud and needs requests, locks and the tree, so that only a launcher
 * opens it (`openMetastatic`).
 */
export const metastaticDriver: Driver<MetastaticProvider> = {
  name: METASTATIC,
  contract: 1,
  capabilities: { launches: true, inventory: false, probes: false, tags: false },
  config: metastaticConfig,
  open: async (config) => {
    throw new DriverError(
      "configuration",
      `provider ${config.name}: only a launcher opens a metastatic provider`,
    );
  },
};
