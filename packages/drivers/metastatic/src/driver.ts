import { type Driver, DriverError, provide } from "@nodeyard/driver";
import { type MetastaticProvider, metastaticConfig } from "./config.ts";
import { SlotProvider, slotRules } from "./provider.ts";
import { type SliverAccess, SlotSlivers } from "./slot-slivers.ts";

/**
 * Makes the `metastatic` driver. `accessOf` returns the access to sliver hosts with the keys of a state folder. `open` asks no machine:
 * backing nodes come and go, and each is reached when its first slot needs it.
 */
export function createMetastaticDriver(
  accessOf: (stateFolder: string | undefined) => SliverAccess,
): Driver<MetastaticProvider> {
  return {
    name: "metastatic",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: false },
    slots: slotRules,
    config: metastaticConfig,
    async open(config, context) {
      const { backings, installation, clock, random, stateFolder } = context;
      if (backings === undefined)
        throw new DriverError("configuration", `provider ${config.name}: only a launcher has backing nodes`);
      const access = accessOf(stateFolder);
      const { noteCaches } = backings;
      const slivers = new SlotSlivers({
        ...{ access, installation, provider: config.name, clock, random, noteCaches },
      });
      return provide(config.name, new SlotProvider(config, { ...context, backings }, slivers));
    },
  };
}
