import type { Driver, DriverConfig } from "@nodeyard/driver";
import type { Clock, Random } from "@nodeyard/runtime";
import type { FakeCloud } from "./cloud/fake-cloud.ts";
import type { FakeProviderConfig, FakeProviderOwn } from "./own.ts";
import { FakeProvider } from "./provider.ts";

export interface FakeDriverOptions {
  readonly config: DriverConfig<FakeProviderConfig>;
  /** The cloud of a provider; tests and simulations hand out their own. */
  readonly cloudOf: (own: FakeProviderOwn, clock: Clock, random: Random) => FakeCloud;
}

export function createFakeDriver(options: FakeDriverOptions): Driver<FakeProviderConfig> {
  return {
    name: "fake",
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config: options.config,
    open: async (config, { clock, random }) =>
      new FakeProvider(options.cloudOf(config.own, clock, random), config, clock),
  };
}
