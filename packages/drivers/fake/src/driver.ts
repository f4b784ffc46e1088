import { type Driver, type DriverConfig, DriverError } from "@nodeyard/driver";
import { type Clock, messageOf, type Random } from "@nodeyard/runtime";
import type { FakeCloud } from "./cloud/fake-cloud.ts";
import type { FakeProviderConfig, FakeProviderOwn } from "./config.ts";
import { cloudShelf, type Shelf } from "./images.ts";
import { fakeProvider } from "./provider.ts";

/** The handles of the driver. */
export interface FakeDriverOptions {
  readonly config: DriverConfig<FakeProviderConfig>;
  /** The cloud of a provider; tests and simulations provide their own. Throws when its journal cannot be opened. */
  readonly cloudOf: (own: FakeProviderOwn, clock: Clock, random: Random) => FakeCloud;
  /** The image store of a provider with a folder; absent: images are kept in the cloud's memory. */
  readonly shelfOf?: (folder: string) => Shelf;
}

/** Makes a `fake` driver on given clouds. Configurations use `fakeDriver`. */
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
      // Without a folder, or a shelf for one, images live in the cloud's memory and are gone with the process.
      const shelf = (images && shelfOf?.(images.folder)) ?? cloudShelf(cloud);
      return fakeProvider(cloud, provider, clock, shelf);
    },
  };
}
