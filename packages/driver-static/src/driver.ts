import type { Driver } from "@nodeyard/driver";
import { type StaticProviderConfig, staticConfig } from "./config.ts";
import { StaticProvider } from "./provider.ts";

/** The `static` driver. */
export const staticDriver: Driver<StaticProviderConfig> = {
  name: "static",
  contract: 1,
  capabilities: { launches: false, inventory: true, probes: true, tags: false },
  config: staticConfig,
  open: async (config, context) => new StaticProvider(config, context),
};
