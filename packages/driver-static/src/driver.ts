import type { Driver } from "@nodeyard/driver";
import { staticConfig } from "./config/index.ts";
import type { StaticProviderConfig } from "./own.ts";
import { StaticProvider } from "./provider.ts";

/** The `static` driver. */
export const staticDriver: Driver<StaticProviderConfig> = {
  name: "static",
  contract: 1,
  capabilities: { launches: false, inventory: true, probes: true, tags: false },
  config: staticConfig,
  open: async (config, context) => new StaticProvider(config, context),
};
