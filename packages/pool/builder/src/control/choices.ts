import type { ImageSettings } from "@nodeyard/config";
import { type UploadChoice, whatToUpload } from "../core/uploads.ts";
import { type BuildChoice, whenToBuild } from "../core/when.ts";
import type { LocalBuild } from "../runs/disk.ts";
import { type BuilderContext, formatsWanted } from "./context.ts";

/**
 * Whether a configured image must be built, according to the view; called again under its lock, after the view was compared with
 * the tree. `now`, `requestedAt`: milliseconds of tree time; the time of a request is known only under the lock, and until then a
 * request counts as made now.
 */
export function buildChoice(
  context: BuilderContext,
  { name, rebuildAgeMs, paused }: ImageSettings,
  now: number,
  requestedAt = context.view.images.requested(name) ? now : undefined,
): BuildChoice {
  const { images } = context.view;
  return whenToBuild({
    builds: images.builds(name).values(),
    requestedAt,
    now,
    formats: formatsWanted(context, name),
    rebuildAgeMs,
    paused: paused || (images.get(name)?.paused ?? false),
    changed: context.sources.changed(name),
  });
}

/** The upload of an image to a provider that this host must make; undefined: the provider is not open. `local`: builds of this host. */
export function uploadChoice(
  { view, settings, providers }: BuilderContext,
  provider: string,
  image: string,
  local: readonly LocalBuild[],
  now: number,
): UploadChoice | undefined {
  const open = providers.get(provider);
  if (open === undefined) return undefined;
  const own = local.filter(({ intent }) => intent.image === image);
  return whatToUpload({
    now,
    builds: view.images.builds(image).values(),
    uploads: [...view.images.uploads(image)].filter((one) => one.provider === provider),
    local: new Map(own.map(({ intent, formats }) => [intent.build, formats])),
    formats: open.store.formats,
    paused: settings.uploads.get(provider)?.images.get(image)?.paused ?? false,
  });
}
