import type { BuilderSettings } from "@nodeyard/config";
import type { ImageStore, Resource } from "@nodeyard/driver";
import type { Clock, Random } from "@nodeyard/runtime";
import type { Counters, Live, Log } from "@nodeyard/telemetry";
import type { Fence, Tree } from "@nodeyard/tree";
import type { View } from "@nodeyard/view";
import type { Disk } from "../runs/disk.ts";
import type { ProgressTable } from "./progress.ts";
import type { SourceTable } from "./sources.ts";

/** A provider that takes images, opened. Valid as long as it is in `BuilderContext.providers`. */
export interface ImageProvider {
  readonly name: string;
  readonly store: ImageStore;
  /** All that the cloud has, as `Provider.list`. */
  list(signal: AbortSignal): Promise<readonly Resource[]>;
}

/** What every controller of the builder works with; nothing in it is global. */
export interface BuilderContext {
  readonly tree: Tree;
  readonly view: View;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly counters: Counters;
  /** What its controllers do, for the stack dump. */
  readonly live: Live;
  readonly fence: Fence;
  readonly disk: Disk;
  readonly progress: ProgressTable;
  readonly sources: SourceTable;
  /** Why the last build of an image here failed, by image; and its last upload, by `<image>/<provider>`. Absent: it did not. */
  readonly failures: Map<string, { readonly build: string; readonly why: string }>;
  /** UUID of the installation, which tags of images in clouds carry. */
  readonly installation: string;
  /** UUID of this host's `images-dir`: by it a build is known to have its files here, whatever the host is called. */
  readonly builderId: string;
  /** Name of this host in records. */
  readonly fqdn: string;
  /** Those in force; read anew at each use, because a reload replaces them. */
  readonly settings: BuilderSettings;
  /** Open ones, by name. One that is missing may be configured and not open yet. */
  readonly providers: ReadonlyMap<string, ImageProvider>;
}

/**
 * The formats in which an image is built: its own, and the preferred ones of the open providers that list it, sorted. A provider
 * that opens later may want another one; then the image is built again.
 */
export function formatsWanted(
  { settings, providers }: Pick<BuilderContext, "settings" | "providers">,
  image: string,
): readonly string[] {
  const wanted = new Set(settings.images.get(image)?.formats ?? []);
  for (const [name, { images }] of settings.uploads) {
    const [preferred] = providers.get(name)?.store.formats ?? [];
    if (images.has(image) && preferred !== undefined) wanted.add(preferred);
  }
  return [...wanted].sort();
}
