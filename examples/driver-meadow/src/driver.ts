import { cloudProvider, type Driver } from "@nodeyard/driver";
import { type MeadowProviderConfig, meadowConfig } from "./config.ts";
import { type MeadowHost, mapError, meadow } from "./provider.ts";

export function createMeadowDriver(host: MeadowHost): Driver<MeadowProviderConfig> {
  return {
    name: "meadow",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config: meadowConfig,
    open: (config, context) =>
      cloudProvider(config, mapError, (closed) => meadow(config, context, host, closed)),
  };
}
