import { type Driver, type DriverConfig, DriverError } from "@nodeyard/driver";
import { type Clock, messageOf, type Random } from "@nodeyard/runtime";
import type { FakeCloud } from "./cloud/fake-cloud.ts";
import type { ImageFolder } from "./images/folder.ts";
import { FolderStore } from "./images/store.ts";
import type { FakeProviderConfig, FakeProviderOwn } from "./own.ts";
import { FakeProvider } from "./provider.ts";

export interface FakeDriverOptions {
  readonly config: DriverConfig<FakeProviderConfig>;
  /** The cloud of a provider; tests and simulations hand out their own. */
  readonly cloudOf: (own: FakeProviderOwn, clock: Clock, random: Random) => FakeCloud;
  /** Where images go; absent: no cloud takes any. */
  readonly folderOf?: (path: string) => ImageFolder;
}

export function createFakeDriver(options: FakeDriverOptions): Driver<FakeProviderConfig> {
  return {
    name: "fake",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config: options.config,
    open: async (config, { clock, random }) =>
      new FakeProvider(
        cloudFor(options, config, clock, random),
        config,
        clock,
        imagesFor(options, config.own, random),
      ),
  };
}

function imagesFor(
  { folderOf }: FakeDriverOptions,
  { images }: FakeProviderOwn,
  random: Random,
): FolderStore | undefined {
  if (images === undefined || folderOf === undefined) return undefined;
  return new FolderStore(folderOf(images.folder), images.formats, random);
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
