import type { Driver } from "@nodeyard/driver";
import { type StaticProviderConfig, staticConfig } from "./config.ts";
import { staticProvider } from "./provider.ts";

/** The `static` driver: existing hosts, which are neither made nor deleted. Opening contacts none of them; the launcher probes each. */
export const staticDriver: Driver<StaticProviderConfig> = {
  name: "static",
  contract: 1,
  capabilities: { launches: false, inventory: true, probes: true, tags: false },
  config: staticConfig,
  open: async (config, context) => staticProvider(config, context),
};
