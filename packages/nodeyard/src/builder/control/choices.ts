import type { ImageSettings } from "../../config/index.ts";
import { type UploadChoice, whatToUpload } from "../core/uploads.ts";
import { type BuildChoice, type BuildFacts, whenToBuild } from "../core/when.ts";
import type { LocalBuild } from "../runs/disk.ts";
import { type BuilderContext, formatsWanted } from "./context.ts";

/** Whether an image of the configuration is to be built, as the view has it. `now`: milliseconds of tree time. */
export function buildChoice(context: BuilderContext, name: string, now: number): BuildChoice {
  const { images } = context.view;
  return judgeBuild(context, context.settings.images.get(name)!, now, {
    builds: images.builds(name).values(),
    paused: images.get(name)?.paused ?? false,
    // When it was is asked under the lock.
    requestedAt: images.requested(name) ? now : undefined,
  });
}

/** The same by what the tree itself says of the image, to be asked again under its lock. */
export function judgeBuild(
  context: BuilderContext,
  image: ImageSettings,
  now: number,
  found: Pick<BuildFacts, "builds" | "paused" | "requestedAt">,
): BuildChoice {
  const { name, rebuildAgeMs, paused } = image;
  return whenToBuild({
    ...found,
    now,
    formats: formatsWanted(context, name),
    rebuildAgeMs,
    paused: paused || found.paused,
    changed: context.sources.changed(name),
  });
}

/** What this host is to upload of an image to a provider; undefined: the provider is not open. `local`: all builds of this host. */
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
