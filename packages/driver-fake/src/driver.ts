import { type Driver, type DriverConfig, DriverError } from "@nodeyard/driver";
import { type Clock, messageOf, type Random } from "@nodeyard/runtime";
import type { FakeCloud } from "./cloud/fake-cloud.ts";
import type { FakeProviderConfig, FakeProviderOwn } from "./config.ts";
import { cloudShelf, type Shelf } from "./images.ts";
import { fakeProvider } from "./provider.ts";

/** What the driver's clouds are made of. */
export interface FakeDriverOptions {
  readonly config: DriverConfig<FakeProviderConfig>;
  /** The cloud of a provider; tests and simulations hand out their own. Throws when its journal cannot be opened. */
  readonly cloudOf: (own: FakeProviderOwn, clock: Clock, random: Random) => FakeCloud;
  /** Where images go whose provider names a folder; absent: into the cloud's memory. */
  readonly shelfOf?: (folder: string, random: Random) => Shelf;
}

/** A `fake` driver over clouds of one's own; `fakeDriver` is the one that configurations name. */
export function createFakeDriver({
  config,
  cloudOf,
  shelfOf,
}: FakeDriverOptions): Driver<FakeProviderConfig> {
  return {
    name: "fake",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config,
    async open(provider, { clock, random }) {
      const { journal, images } = provider.own;
      let cloud: FakeCloud;
      try {
        cloud = cloudOf(provider.own, clock, random);
      } catch (error) {
        const why = `provider ${provider.name}: journal ${journal}: ${messageOf(error)}`;
        throw new DriverError("configuration", why, { cause: error });
      }
      const shelf = (images && shelfOf?.(images.folder, random)) ?? cloudShelf(cloud);
      return fakeProvider(cloud, provider, clock, shelf);
    },
  };
}
