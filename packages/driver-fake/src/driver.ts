import { type Driver, type DriverConfig, DriverError } from "@nodeyard/driver";
import { type Clock, messageOf, type Random } from "@nodeyard/runtime";
import type { FakeCloud } from "./cloud/fake-cloud.ts";
import type { FakeProviderConfig, FakeProviderOwn } from "./config.ts";
import { CloudShelf } from "./images/cloud-shelf.ts";
import type { ImageFolder } from "./images/folder.ts";
import { FolderShelf } from "./images/folder-shelf.ts";
import type { Shelf } from "./images/shelf.ts";
import { FakeProvider } from "./provider.ts";

export interface FakeDriverOptions {
  readonly config: DriverConfig<FakeProviderConfig>;
  /** The cloud of a provider; tests and simulations hand out their own. */
  readonly cloudOf: (own: FakeProviderOwn, clock: Clock, random: Random) => FakeCloud;
  /** Where images go whose provider names a folder; absent: into the cloud's memory. */
  readonly folderOf?: (path: string) => ImageFolder;
}

export function createFakeDriver(options: FakeDriverOptions): Driver<FakeProviderConfig> {
  return {
    name: "fake",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config: options.config,
    open: async (config, { clock, random }) => {
      const cloud = cloudFor(options, config, clock, random);
      return new FakeProvider(cloud, config, clock, shelfFor(options, config.own, cloud, random));
    },
  };
}

function shelfFor(
  { folderOf }: FakeDriverOptions,
  { images }: FakeProviderOwn,
  cloud: FakeCloud,
  random: Random,
): Shelf {
  if (images === undefined || folderOf === undefined) return new CloudShelf(cloud);
  return new FolderShelf(folderOf(images.folder), random);
}

function cloudFor(
  options: FakeDriverOptions,
  config: FakeProviderConfig,
  clock: Clock,
  random: Random,
): FakeCloud {
  try {
    return options.cloudOf(config.own, clock, random);
  } catch (error) {
    const why = `provider ${config.name}: journal ${config.own.journal}: ${messageOf(error)}`;
    throw new DriverError("configuration", why, { cause: error });
  }
}
