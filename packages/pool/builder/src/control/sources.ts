import type { BuilderSettings, ImageSettings } from "@nodeyard/config";
import { messageOf } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { Disk } from "../runs/disk.ts";

/**
 * Digests of the sources of images that are rebuilt on change. Only builds of this host are compared: another host may have other
 * elements, and then the two would rebuild in turn for ever.
 */
export class SourceTable {
  readonly #disk: Disk;
  readonly #settings: () => BuilderSettings;
  readonly #log: Log;
  /** By image, builds of this host that were made of something else. */
  #changed: ReadonlyMap<string, ReadonlySet<string>> = new Map();

  constructor(disk: Disk, log: Log, settings: () => BuilderSettings) {
    this.#disk = disk;
    this.#log = log;
    this.#settings = settings;
  }

  /** Ids of builds of this host that were made of other sources than there are; as of the last `refresh`. */
  changed(image: string): ReadonlySet<string> {
    return this.#changed.get(image) ?? new Set();
  }

  /** Undefined for an image that is not rebuilt when it changes, and where it cannot be read. */
  async digest(image: ImageSettings): Promise<string | undefined> {
    if (!image.rebuildOnChange) return undefined;
    try {
      return await this.#disk.sources(image, this.#settings().elementsDir);
    } catch (error) {
      const about = { image: image.name, error: messageOf(error) };
      this.#log.warn(about, "cannot read the elements of an image: their changes are not noticed");
      return undefined;
    }
  }

  /** Looks at all of them again, which reads all files of their elements. Called by the sweep. */
  async refresh(): Promise<void> {
    const images = [...this.#settings().images.values()].filter(({ rebuildOnChange }) => rebuildOnChange);
    const local = images.length === 0 ? [] : await this.#disk.list();
    const all = images.map(async (image): Promise<[string, ReadonlySet<string>]> => {
      const now = await this.digest(image);
      if (now === undefined) return [image.name, this.changed(image.name)];
      const own = local.map(({ intent }) => intent).filter((intent) => intent.image === image.name);
      const other = own.filter(({ sources }) => sources !== undefined && sources !== now);
      return [image.name, new Set(other.map(({ build }) => build))];
    });
    this.#changed = new Map(await Promise.all(all));
  }
}
