import type { FakeCloud } from "@nodeyard/driver-fake";
import { Broken } from "../checks/index.ts";
import type { Builders } from "./builders.ts";
import type { ImageCheck } from "./image-check.ts";

interface ImageScene {
  readonly clouds: ReadonlyMap<string, FakeCloud>;
  readonly images: ImageCheck;
  readonly builders: Builders;
}

/** Images in clouds that carry our tag and have no upload record. */
export function imagesWithoutRecord({ clouds, images }: ImageScene): readonly string[] {
  const known = new Set([...images.uploads.values()].map(({ externalId }) => externalId));
  return [...clouds].flatMap(([provider, cloud]) =>
    cloud
      .inspectImages()
      .filter(({ id }) => !known.has(id))
      .map(({ id, tag }) => `${provider}: image ${id} of upload ${tag?.uploadId} of build ${tag?.buildId}`),
  );
}

/** What must be true of images at the end: records, clouds, disks and locks agree. */
export function checkImages(scene: ImageScene): void {
  const { clouds, images, builders } = scene;
  const lost = imagesWithoutRecord(scene);
  if (lost.length > 0) throw new Broken("nothing outlives its record", undefined, lost.join(", "));
  const whole = new Set(
    [...clouds.values()].flatMap((cloud) =>
      cloud.inspectImages().flatMap((image) => (image.whole ? [image.id] : [])),
    ),
  );
  for (const [path, { state, externalId }] of images.uploads)
    if (state === "ready" && !whole.has(String(externalId)))
      throw new Broken("a ready upload has an image", undefined, `${path}: ${externalId}`);
  const ready = readyBuilds(images);
  if (ready.length === 0) throw new Broken("an image is built", undefined, "no build is ready");
  const kept = builders.disks.flatMap((disk) => disk.inspect().builds);
  for (const build of ready)
    if (!kept.includes(build)) throw new Broken("a ready build has its files", undefined, build);
  for (const build of kept)
    if (!ready.includes(build))
      throw new Broken("nothing outlives its record", undefined, `files of build ${build}`);
  const running = builders.disks.flatMap((disk) => disk.inspect().running);
  if (running.length > 0)
    throw new Broken("nothing outlives its record", undefined, `commands of ${running}`);
  const contenders = images.contenders();
  if (contenders.length > 0) throw new Broken("a lock is given back", undefined, contenders.join(", "));
  for (const { name, counters, log, builder } of builders.processes) {
    // A builder that was stopped while it started finds its tree closed.
    if (builder === undefined) continue;
    const unexpected = counters.list().filter((counter) => counter.name === "builder.unexpected");
    if (unexpected.length > 0)
      throw new Broken(
        "no error comes unexpected",
        undefined,
        `${name}: ${JSON.stringify(log.lines.filter(({ level }) => level === "error" || level === "warn").slice(-8))}`,
      );
  }
}

export function readyBuilds({ builds }: ImageCheck): readonly string[] {
  return [...builds].flatMap(([path, { state }]) => (state === "ready" ? [idOf(path)] : []));
}

function idOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
