import { paths } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { formatsToPrune } from "../core/files.ts";
import type { Intent, LocalBuild } from "../runs/disk.ts";
import type { BuilderContext } from "./context.ts";

/**
 * One pass over the files of this host: deletes those of builds that are gone, failed or deleted, and formats that are not needed
 * any more. Only files that an intent of this installation proves to be ours are touched, and only with a complete view.
 * `isBusy`: this process works on that build. A failure is logged, and the next pass retries.
 */
export async function sweepFiles(context: BuilderContext, isBusy: (build: string) => boolean): Promise<void> {
  const { disk, view, log, counters } = context;
  await adopt(context);
  for (const local of await disk.list()) {
    if (!view.complete) return;
    const { intent, base } = local;
    if (isBusy(intent.build) || intent.installation !== context.installation) continue;
    // Its state is not known, so it may be ready.
    if (view.unreadable.has(paths.imageBuild(intent.image, intent.build))) continue;
    try {
      const record = view.images.builds(intent.image).get(intent.build);
      if (record?.state === "building" || record?.state === "ready") await prune(context, local);
      if (record?.state === "ready") continue;
      // This process does not work on it, so the process that made it has died, whatever the record says.
      await disk.reclaim(intent);
      if (record?.state === "building") continue;
      await disk.remove(base);
      counters.add("builder.retired", 1, { kind: "files" });
      log.info(
        { image: intent.image, build: intent.build, state: record?.state ?? "gone" },
        "removed local files",
      );
    } catch (error) {
      const about = { image: intent.image, build: intent.build, error: messageOf(error) };
      log.warn(about, "cannot remove local files of a build; will retry");
    }
  }
}

/** Files that an old builder made in this folder are ours by its id in the record. They get an intent, and are then treated as our own. */
async function adopt({ disk, view, builderId, installation, log }: BuilderContext): Promise<void> {
  const known = new Set((await disk.list()).map(({ intent }) => intent.build));
  for (const image of view.images.names()) {
    for (const [build, record] of view.images.builds(image)) {
      if (record.builderId !== builderId || record.state !== "ready" || known.has(build)) continue;
      const intent: Intent = {
        v: 1,
        installation,
        image,
        build,
        work: `${disk.folder}/.work/${image}-${build}`,
      };
      if (await disk.adopt(intent)) log.info({ image, build }, "took over image files of an earlier builder");
    }
  }
}

/** Carries out `delete-after-upload` for one build. */
async function prune(
  { disk, view, settings, providers, log }: BuilderContext,
  { base, intent, formats }: LocalBuild,
) {
  const image = settings.images.get(intent.image);
  if (image?.deleteAfterUpload !== true) return;
  const ready = new Set(
    [...view.images.uploads(intent.image)]
      .filter(({ build, record }) => build === intent.build && record.state === "ready")
      .map(({ provider }) => provider),
  );
  const awaiting = [...settings.uploads].filter(
    ([name, { images }]) => images.has(intent.image) && !ready.has(name),
  );
  // A provider that is not open yet may want any of them.
  if (awaiting.some(([name]) => !providers.has(name))) return;
  const awaited = awaiting.flatMap(([name]) => providers.get(name)!.store.formats);
  const spent = formatsToPrune({ onDisk: formats, keepFormats: image.keepFormats, awaited });
  if (spent.length === 0) return;
  await disk.removeFormats(base, spent);
  log.info(
    { image: intent.image, build: intent.build, formats: spent },
    "removed local files after their upload",
  );
}
